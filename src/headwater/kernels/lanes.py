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


def _gather(tile):
    """Make an intrinsic that adds data[j] * table[places[j], column:] to sums[column:] for begin <= j < end.

    It works on `tile` vectors at once, whose sums stay in registers.
    """

    @intrinsic
    def gather(typing_context, table, places, data, begin, end, column, sums):
        def generate(context, builder, signature, arguments):
            rows, numbers, values, out = (_data(context, builder, signature, arguments, index) for index in (0, 1, 2, 6))
            begin, end, column = arguments[3:6]
            width = _columns(context, builder, signature, arguments, 0)
            held = [cgutils.alloca_once(builder, VECTOR) for _ in range(tile)]
            spots = [_place(builder, out, _shifted(builder, column, index)) for index in range(tile)]
            for one, spot in zip(held, spots, strict=True):
                builder.store(_load(builder, spot), one)
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (j, _):
                row = _row(builder, numbers, j, width, column)
                value = _spread(builder, builder.load(builder.gep(values, [j])))
                for index, one in enumerate(held):
                    there = _load(builder, _place(builder, rows, _shifted(builder, row, index)))
                    builder.store(_sum(builder, builder.load(one), _times(builder, value, there)), one)
            for one, spot in zip(held, spots, strict=True):
                _store(builder, builder.load(one), spot)
            return context.get_dummy_value()

        whole = types.intp
        return types.none(table, places, data, whole, whole, whole, sums), generate

    return gather


def _scatter(tile):
    """Make an intrinsic that adds data[j] * shares[column:] to table[places[j], column:] for begin <= j < end, as `_gather`."""

    @intrinsic
    def scatter(typing_context, table, places, data, begin, end, column, shares):
        def generate(context, builder, signature, arguments):
            rows, numbers, values, given = (_data(context, builder, signature, arguments, index) for index in (0, 1, 2, 6))
            begin, end, column = arguments[3:6]
            width = _columns(context, builder, signature, arguments, 0)
            held = [_load(builder, _place(builder, given, _shifted(builder, column, index))) for index in range(tile)]
            with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (j, _):
                row = _row(builder, numbers, j, width, column)
                value = _spread(builder, builder.load(builder.gep(values, [j])))
                for index, share in enumerate(held):
                    spot = _place(builder, rows, _shifted(builder, row, index))
                    _store(builder, _sum(builder, _load(builder, spot), _times(builder, value, share)), spot)
            return context.get_dummy_value()

        whole = types.intp
        return types.none(table, places, data, whole, whole, whole, shares), generate

    return scatter


def _columns(context, builder, signature, arguments, index):
    array = context.make_array(signature.args[index])(context, builder, arguments[index])
    return builder.extract_value(array.shape, 1)


def _row(builder, numbers, j, width, column):
    """Where the row that is numbered by j begins, at a column, in the flat table."""
    number = builder.sext(builder.load(builder.gep(numbers, [j])), width.type)
    return builder.add(builder.mul(number, width), column)


def _shifted(builder, start, vectors):
    return builder.add(start, ir.Constant(start.type, LANES * vectors))


gather_1, gather_2, gather_3, gather_4 = _gather(1), _gather(2), _gather(3), _gather(4)
gather_5, gather_6, gather_7, gather_8 = _gather(5), _gather(6), _gather(7), _gather(8)
scatter_1, scatter_2, scatter_3, scatter_4 = _scatter(1), _scatter(2), _scatter(3), _scatter(4)
scatter_5, scatter_6, scatter_7, scatter_8 = _scatter(5), _scatter(6), _scatter(7), _scatter(8)


@kernel
def gather_rows(table, places, data, begin, end, sums):
    """Add data[j] * table[places[j]] to the sums for begin <= j < end."""
    n = sums.size
    column = 0
    while column + 8 * LANES <= n:
        gather_8(table, places, data, begin, end, column, sums)
        column += 8 * LANES
    left = (n - column) // LANES
    if left == 1:
        gather_1(table, places, data, begin, end, column, sums)
    elif left == 2:
        gather_2(table, places, data, begin, end, column, sums)
    elif left == 3:
        gather_3(table, places, data, begin, end, column, sums)
    elif left == 4:
        gather_4(table, places, data, begin, end, column, sums)
    elif left == 5:
        gather_5(table, places, data, begin, end, column, sums)
    elif left == 6:
        gather_6(table, places, data, begin, end, column, sums)
    elif left == 7:
        gather_7(table, places, data, begin, end, column, sums)
    for k in range(column + left * LANES, n):
        total = 0.0
        for j in range(begin, end):
            total += data[j] * table[places[j], k]
        sums[k] += total


@kernel
def scatter_rows(table, places, data, begin, end, shares):
    """Add data[j] * shares to table[places[j]] for begin <= j < end."""
    n = shares.size
    column = 0
    while column + 8 * LANES <= n:
        scatter_8(table, places, data, begin, end, column, shares)
        column += 8 * LANES
    left = (n - column) // LANES
    if left == 1:
        scatter_1(table, places, data, begin, end, column, shares)
    elif left == 2:
        scatter_2(table, places, data, begin, end, column, shares)
    elif left == 3:
        scatter_3(table, places, data, begin, end, column, shares)
    elif left == 4:
        scatter_4(table, places, data, begin, end, column, shares)
    elif left == 5:
        scatter_5(table, places, data, begin, end, column, shares)
    elif left == 6:
        scatter_6(table, places, data, begin, end, column, shares)
    elif left == 7:
        scatter_7(table, places, data, begin, end, column, shares)
    for k in range(column + left * LANES, n):
        for j in range(begin, end):
            table[places[j], k] += data[j] * shares[k]
