"""Vector instructions for short rows, four numbers at a time.

LLVM vectorises a loop only when there are about sixteen numbers to go through, and a row of a small matrix has fewer. These
work on rows that are padded to a multiple of LANES; `start` is the place of the row in the flat array.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from headwater.kernels._jit import helper, routine

LANES = 4
VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FLAGS = ("contract", "nsz")


@helper
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


MOST_VECTORS = 8  # that are worked on at once: as many as fit in the registers beside what they are made of


@intrinsic
def gather(typing_context, table, places, data, begin, end, column, vectors, sums):
    """sums[column:] += data[j] * table[places[j], column:] for begin <= j < end, over 1 to MOST_VECTORS vectors."""

    def generate(context, builder, signature, arguments):
        rows, numbers, values, out = (_data(context, builder, signature, arguments, index) for index in (0, 1, 2, 7))
        begin, end, column, vectors = arguments[3:7]
        width = _columns(context, builder, signature, arguments, 0)

        def add(tile):
            held = [cgutils.alloca_once(builder, VECTOR) for _ in range(tile)]  # which LLVM keeps in registers
            spots = [_place(builder, out, _shifted(builder, column, index)) for index in range(tile)]
            for one, spot in zip(held, spots, strict=True):
                builder.store(_load(builder, spot), one)
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (j, _):
                row, value = _row(builder, numbers, values, j, width, column)
                for index, one in enumerate(held):
                    there = _load(builder, _place(builder, rows, _shifted(builder, row, index)))
                    builder.store(_sum(builder, builder.load(one), _times(builder, value, there)), one)
            for one, spot in zip(held, spots, strict=True):
                _store(builder, builder.load(one), spot)

        _for_each_size(builder, vectors, add)
        return context.get_dummy_value()

    whole = types.intp
    return types.none(table, places, data, whole, whole, whole, whole, sums), generate


@intrinsic
def scatter(typing_context, table, places, data, begin, end, column, vectors, shares):
    """table[places[j], column:] += data[j] * shares[column:] for begin <= j < end, over 1 to MOST_VECTORS vectors."""

    def generate(context, builder, signature, arguments):
        rows, numbers, values, given = (_data(context, builder, signature, arguments, index) for index in (0, 1, 2, 7))
        begin, end, column, vectors = arguments[3:7]
        width = _columns(context, builder, signature, arguments, 0)

        def add(tile):
            held = [_load(builder, _place(builder, given, _shifted(builder, column, index))) for index in range(tile)]
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (j, _):
                row, value = _row(builder, numbers, values, j, width, column)
                for index, share in enumerate(held):
                    spot = _place(builder, rows, _shifted(builder, row, index))
                    _store(builder, _sum(builder, _load(builder, spot), _times(builder, value, share)), spot)

        _for_each_size(builder, vectors, add)
        return context.get_dummy_value()

    whole = types.intp
    return types.none(table, places, data, whole, whole, whole, whole, shares), generate


def _for_each_size(builder, vectors, add):
    """Code for every possible number of vectors, of which one runs."""
    for tile in range(1, MOST_VECTORS + 1):
        with builder.if_then(builder.icmp_signed("==", vectors, ir.Constant(vectors.type, tile))):
            add(tile)


def _columns(context, builder, signature, arguments, index):
    array = context.make_array(signature.args[index])(context, builder, arguments[index])
    return builder.extract_value(array.shape, 1)


def _row(builder, numbers, values, j, width, column):
    """Where the row that is numbered by j begins, at a column, in the flat table; and the value of j in every lane."""
    number = builder.sext(builder.load(builder.gep(numbers, [j])), width.type)
    return builder.add(builder.mul(number, width), column), _spread(builder, builder.load(builder.gep(values, [j])))


def _shifted(builder, start, vectors):
    return builder.add(start, ir.Constant(start.type, LANES * vectors))


@helper
def gather_rows(table, places, data, begin, end, sums):
    """Add data[j] * table[places[j]] to the sums for begin <= j < end."""
    whole = sums.size // LANES * LANES
    for column in range(0, whole, MOST_VECTORS * LANES):
        vectors = min(MOST_VECTORS, (whole - column) // LANES)
        gather(table, places, data, begin, end, column, vectors, sums)
    for k in range(whole, sums.size):
        total = 0.0
        for j in range(begin, end):
            total += data[j] * table[places[j], k]
        sums[k] += total


# The same, called by kernels that are large without it.
called_gather_rows = routine(gather_rows.py_func)


@helper
def scatter_rows(table, places, data, begin, end, shares):
    """Add data[j] * shares to table[places[j]] for begin <= j < end."""
    whole = shares.size // LANES * LANES
    for column in range(0, whole, MOST_VECTORS * LANES):
        vectors = min(MOST_VECTORS, (whole - column) // LANES)
        scatter(table, places, data, begin, end, column, vectors, shares)
    for k in range(whole, shares.size):
        for j in range(begin, end):
            table[places[j], k] += data[j] * shares[k]
