"""Vector instructions for short rows, four numbers at a time.

LLVM vectorises a loop only when there are about sixteen numbers to go through, and a row of a small matrix has fewer. These
work on rows that are padded to a multiple of LANES; `start` is the place of the row in the flat array.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from headwater.kernels._jit import kernel

LANES = 4
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FLAGS = ("contract", "nsz")


@kernel
def padded(width):
    """The width rounded up to whole vectors."""
    return (width + LANES - 1) // LANES * LANES


@intrinsic
def blend(typing_context, row, start, keep, other, gain, vectors):
    """row = keep * row + gain * other."""

    def generate(context, builder, signature, arguments):
        mine, theirs = (_data(context, builder, signature, arguments, index) for index in (0, 3))
        start, vectors = arguments[1], arguments[5]
        keep, gain = _spread(builder, arguments[2]), _spread(builder, arguments[4])
        with cgutils.for_range(builder, vectors) as loop:
            at = builder.mul(loop.index, ir.Constant(loop.index.type, LANES))
            place = _place(builder, mine, builder.add(start, at))
            old, new = _load(builder, place), _load(builder, _place(builder, theirs, at))
            _store(builder, _sum(builder, _times(builder, keep, old), _times(builder, gain, new)), place)
        return context.get_dummy_value()

    return types.none(row, types.intp, types.float64, other, types.float64, types.intp), generate


@intrinsic
def turn(typing_context, row, start, keep, other, gain, share, vectors):
    """row = keep * row + gain * other; other = other + share * row as it was."""

    def generate(context, builder, signature, arguments):
        mine, theirs = (_data(context, builder, signature, arguments, index) for index in (0, 3))
        start, vectors = arguments[1], arguments[6]
        keep, gain, share = (_spread(builder, arguments[index]) for index in (2, 4, 5))
        with cgutils.for_range(builder, vectors) as loop:
            at = builder.mul(loop.index, ir.Constant(loop.index.type, LANES))
            place, other_place = _place(builder, mine, builder.add(start, at)), _place(builder, theirs, at)
            old, other = _load(builder, place), _load(builder, other_place)
            _store(builder, _sum(builder, _times(builder, keep, old), _times(builder, gain, other)), place)
            _store(builder, _sum(builder, other, _times(builder, share, old)), other_place)
        return context.get_dummy_value()

    return types.none(row, types.intp, types.float64, other, types.float64, types.float64, types.intp), generate


def _data(context, builder, signature, arguments, index):
    return context.make_array(signature.args[index])(context, builder, arguments[index]).data


def _spread(builder, number):
    """The same number in every lane."""
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _place(builder, pointer, index):
    return builder.bitcast(builder.gep(pointer, [index]), VECTOR.as_pointer())


def _load(builder, place):
    return builder.load(place, align=8)


def _store(builder, value, place):
    builder.store(value, place, align=8)


def _sum(builder, one, other):
    return builder.fadd(one, other, flags=FLAGS)


def _times(builder, one, other):
    return builder.fmul(one, other, flags=FLAGS)
