"""exp, log and digamma of one float64, without branches, so that LLVM vectorises their callers.

Numba from the package index has no vector mathematics library: math.exp in a loop is one
call per element. These are polynomials, and run 4x faster inside any loop of a kernel.

The coefficients interpolate at Chebyshev nodes of the reduced interval, in 60 digits.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from headwater.kernels._jit import helper_exact

LOG2_E = 1.4426950408889634
# ln 2 in two parts: the high one has 33 bits, so that exponent * LN2_HIGH is exact.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10

# Adding 1.5 * 2**52 pushes the fraction out: the low bits then hold the rounded integer.
ROUNDER = 6755399441055744.0
EXP_LOWEST = -708.0  # the results stay normal numbers between these two
EXP_HIGHEST = 709.0

# Everything about bits is uint64: AVX2 has no arithmetic shift right of 64-bit integers, and
# Numba makes a float of uint64 + int64.
MANTISSA_BITS = np.uint64(52)
MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
EXPONENT_BIAS = np.uint64(1023)
SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)
ONE_MINUS_SQRT_HALF = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
# An integer below 2**52 or-ed into the bits of 2**52 is the float 2**52 + integer.
TWO_52 = np.uint64(0x4330000000000000)
TWO_52_PLUS_BIAS = 4503599627371519.0
INFINITY = np.inf
FAR = 1e30  # beyond it, what is added to a number is lost, and powers would overflow


@intrinsic
def _to_bits(typing_context, x):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def _from_bits(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@helper_exact
def exp(x):
    """Exponential, to 2e-16 relative: 0 below -708, exp(709) above 709, nan for nan."""
    # Comparisons are written so that nan falls through to x.
    y = EXP_LOWEST if x < EXP_LOWEST else x
    y = EXP_HIGHEST if y > EXP_HIGHEST else y
    shifted = y * LOG2_E + ROUNDER
    exponent = shifted - ROUNDER
    r = (y - exponent * LN2_HIGH) - exponent * LN2_LOW  # |r| <= ln(2) / 2
    # (exp(r) - 1 - r) / r^2, by Estrin's scheme: short chains suit short loops.
    r2 = r * r
    r4 = r2 * r2
    low = (0.5000000000000001 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2
    middle = (0.0013888888917213717 + 0.00019841269863053618 * r) + (2.4801521295954376e-05 + 2.7557268459997064e-06 * r) * r2
    high = 2.7620088445409746e-07 + 2.510038549551032e-08 * r
    mantissa = 1.0 + (r + r2 * (low + (middle + high * r4) * r4))
    # A product, not an addition to the exponent's bits: nan times anything is nan.
    power = _from_bits((_to_bits(shifted) + EXPONENT_BIAS) << MANTISSA_BITS)
    return 0.0 if x < EXP_LOWEST else mantissa * power


@helper_exact
def log(x):
    """Natural logarithm, to 2e-16 relative, of a positive normal number, inf or nan.

    Zero and the subnormal numbers give a finite floor between -709.1 and -708.4, so that
    ``x * log(x)`` is 0 at 0. Negative numbers give nonsense.
    """
    # x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)): no cancellation about 1.
    bits = _to_bits(x) + ONE_MINUS_SQRT_HALF
    m = _from_bits((bits & MANTISSA) + SQRT_HALF)
    exponent = _from_bits((bits >> MANTISSA_BITS) | TWO_52) - TWO_52_PLUS_BIAS
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    # log(1 + f) = 2 atanh(s) = 2 s + s z q(z), and 2 s = f - s f keeps f exact.
    q = 0.14616585424888623
    q = q * z + 0.15331710618210773
    q = q * z + 0.18182889455674947
    q = q * z + 0.22222211130259878
    q = q * z + 0.2857142862600327
    q = q * z + 0.39999999999899444
    q = q * z + 0.666666666666667
    result = exponent * LN2_HIGH + (f + (exponent * LN2_LOW + s * (q * z - f)))
    return result if x < INFINITY else x


@helper_exact
def digamma(x):
    """Derivative of log Gamma for 0 < x < 1e150, to 1e-14 relative, 2e-15 absolute about its root."""
    # psi(x) = psi(x + 6) - sum of 1 / (x + i) for i < 6. The sum is P'/P with
    # P = x (x + 1) ... (x + 5) = u (u + 4) (u + 6) and u = x (x + 5): one division, not six.
    # Beyond FAR the sum is lost beside the logarithm, and sixth powers would overflow.
    near = FAR if x > FAR else x
    u = near * (near + 5.0)
    product = u * (u * (u + 10.0) + 24.0)
    derivative = (2.0 * near + 5.0) * (u * (3.0 * u + 20.0) + 24.0)
    # psi(y) = log(y) - 1/(2y) - w tail(w), w = 1/y^2 <= 1/36: the asymptotic series, refitted.
    y = x + 6.0
    inverse = 1.0 / y
    w = inverse * inverse
    tail = -0.01564810015949732
    tail = tail * w + 0.00741901068471944
    tail = tail * w - 0.004164493431795226
    tail = tail * w + 0.0039682400962590915
    tail = tail * w - 0.008333333300617156
    tail = tail * w + 0.08333333333332073
    return ((log(y) - 0.5 * inverse) - tail * w) - derivative / product


@helper_exact
def stirling(x):
    """What Stirling's formula lacks of log Gamma(x), for x > 6."""
    w = 1.0 / (x * x)
    series = 1.0 / 1188.0 - w * (691.0 / 360360.0 - w * (1.0 / 156.0))
    return (1.0 / 12.0 - w * (1.0 / 360.0 - w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w * series)))) / x


@helper_exact
def log_gamma_ratio(x, rise):
    """log Gamma(x + rise) - log Gamma(x) for 0 < x < 1e150 and 0 < rise < 1e50, to its own precision however large x is."""
    middle = x + 0.5 * (rise - 1.0)
    if middle >= 16.0 * rise + 10.0:
        # The asymptotic series about the middle has even powers only; its coefficients are Bernoulli polynomials at 1/2 + t.
        # Far up it is the same function of t / middle times t: scaled down, ninth powers do not overflow.
        scale = FAR / middle if middle > FAR else 1.0
        t = 0.5 * rise * scale
        u = t * t
        inverse = 1.0 / (middle * scale)
        w = inverse * inverse
        third = t * (u - 0.25) / 3.0
        fifth = t * (u * (u - 5.0 / 6.0) + 7.0 / 48.0) / 10.0
        seventh = t * (u * (u * (u - 1.75) + 49.0 / 48.0) - 31.0 / 192.0) / 21.0
        ninth = t * (u * (u * (u * (u - 3.0) + 3.675) - 1.9375) + 381.0 / 1280.0) / 36.0
        return rise * log(middle) - w * (third + w * (fifth + w * (seventh + w * ninth))) / scale
    # Stirling's series six steps up, where it holds, and the product of the six steps as in digamma.
    low, high = x * (x + 5.0), (x + rise) * (x + rise + 5.0)
    steps = (low / high) * ((low + 4.0) / (high + 4.0)) * ((low + 6.0) / (high + 6.0))
    y = x + 6.0
    z = y + rise
    return (y - 0.5) * log(z / y) + rise * (log(z) - 1.0) + (stirling(z) - stirling(y)) + log(steps)


@helper_exact
def squared_gamma_ratio(x):
    """(Gamma(x + 1/2) / Gamma(x))^2 for 0 < x < 1e18, to 1e-13 relative: without branches, and without a logarithm."""
    # At m + 1/4 it is m + 1/(32 m) - ..., a series in 1/m^2 that holds far up; sixteen steps lead down from there.
    u, v = x * (x + 15.0), (x + 0.5) * (x + 15.5)
    below = u * (u + 14.0) * (u + 26.0) * (u + 36.0) * (u + 44.0) * (u + 50.0) * (u + 54.0) * (u + 56.0)
    above = v * (v + 14.0) * (v + 26.0) * (v + 36.0) * (v + 44.0) * (v + 50.0) * (v + 54.0) * (v + 56.0)
    steps = below / above
    inverse = 1.0 / (x + 15.75)
    w = inverse * inverse
    series = 1.0 + w * (1.0 / 32.0 - w * (9.0 / 2048.0 - w * (153.0 / 65536.0 - w * (21429.0 / 8388608.0))))
    return steps * steps * (x + 15.75) * series
