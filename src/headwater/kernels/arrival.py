"""One source before an array of sensors: rows in, expected second moments (and scores, and the source's signal) out.

A snapshot z of m sensors is complex normal with covariance alpha a a^H + v I, so given the sensors o that are observed, with
d = |a_o|^2 and c = a_o^H z_o, the source has mean s = alpha c / (v + alpha d) and variance tau = alpha v / (v + alpha d), and
the missing sensors u have mean a_u s and covariance v I + tau a_u a_u^H: no matrix has to be inverted.

Rows have real and imaginary parts side by side, (n, 2 m), NaN in either where a sensor is missing. Complex vectors are (2, m).
"""

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import log
from headwater.kernels.gaussian import add_products

BLOCK = 64
LOG_PI = np.log(np.pi)
QUIETEST = 1e-12  # of the noise, as a part of the mean power of a sensor
SILENCE = 1e-100  # and in any case: the largest powers may be divided by it
# Points of a grid for each sensor. A polynomial of degree m - 1 that is not negative has one with this part of its maximum
# (Bernstein's inequality).
FINENESS, NEAR = 8, 0.92
STEPS = 60


@helper
def prepare(steering, slope, table):
    """Write the functions of the steering vector a and its derivative a' that rows need: a, |a|^2, |a'|^2, a^* a' (6, m)."""
    for j in range(steering.shape[1]):
        ar, ai, pr, pi = steering[0, j], steering[1, j], slope[0, j], slope[1, j]
        table[0, j] = ar
        table[1, j] = ai
        table[2, j] = ar * ar + ai * ai
        table[3, j] = pr * pr + pi * pi
        table[4, j] = ar * pr + ai * pi
        table[5, j] = ar * pi - ai * pr


@helper
def complete_block(X, at, rows, weights, table, power, noise, block, holes, heard, scores, sources):
    """Load rows, one row of memory per sensor, and fill in what is missing; all times the root of the weight.

    `holes` become the root of w tau where a sensor is missing and 0 elsewhere. Returns the score of the rows, what they say
    of the angle (Fisher's information), and how much of them is missing.
    """
    m = table.shape[1]
    score, information, missing = 0.0, 0.0, 0.0
    level, contrast = log(noise), power / noise
    for b in range(rows):
        count, energy, gain, steep, skew, bend, real, imag = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            x, y = X[at + b, 2 * j], X[at + b, 2 * j + 1]
            known = x + y == x + y
            seen = 1.0 if known else 0.0
            x = x if known else 0.0
            y = y if known else 0.0
            count += seen
            energy += x * x + y * y
            real += table[0, j] * x + table[1, j] * y
            imag += table[0, j] * y - table[1, j] * x
            gain += seen * table[2, j]
            steep += seen * table[3, j]
            skew += seen * table[4, j]
            bend += seen * table[5, j]
        total = noise + power * gain
        ratio = power / total
        distance = (energy - ratio * (real * real + imag * imag)) / noise
        value = -count * LOG_PI - (count - 1.0) * level - log(total) - max(distance, 0.0)
        weight = weights[at + b] if weights.size else 1.0
        score += weight * value
        information += weight * (2.0 * contrast * ratio) * max(gain * steep - skew * skew - bend * bend, 0.0)
        missing += m - count
        real *= ratio
        imag *= ratio
        if scores.size:
            scores[at + b] = value
        if sources.size:
            sources[at + b, 0] = real
            sources[at + b, 1] = imag
        if heard.size:
            root, hole = np.sqrt(weight), np.sqrt(weight * noise * ratio)
            for j in range(m):
                x, y = X[at + b, 2 * j], X[at + b, 2 * j + 1]
                seen = x + y == x + y
                heard[j] += weight if seen else 0.0
                holes[j, b] = 0.0 if seen else hole
                block[0, j, b] = root * (x if seen else table[0, j] * real - table[1, j] * imag)
                block[1, j, b] = root * (y if seen else table[0, j] * imag + table[1, j] * real)
    return score, information, missing


@helper
def add_moments(block, holes, rows, missing, moments):
    """Add the products of sensors to the lower triangles: real, the two halves of imaginary, and those of the holes."""
    for i in range(block.shape[1]):
        add_products(block[0, i], block[0], rows, i, moments[0])
        add_products(block[1, i], block[1], rows, i, moments[0])
        add_products(block[1, i], block[0], rows, i, moments[1])
        add_products(block[0, i], block[1], rows, i, moments[2])
        if missing > 0.0:
            add_products(holes[i], holes, rows, i, moments[3])


@kernel
def gather_moments(moments, steering, noise, size, heard, real, imag):
    """Add E[z z^H] of rows that weigh `size` to its real and imaginary parts."""
    for i in range(steering.shape[1]):
        for j in range(i + 1):
            hole = moments[3, i, j]
            re = moments[0, i, j] + hole * (steering[0, i] * steering[0, j] + steering[1, i] * steering[1, j])
            im = moments[1, i, j] - moments[2, i, j]
            im += hole * (steering[1, i] * steering[0, j] - steering[0, i] * steering[1, j])
            if i == j:
                real[i, i] += re + noise * max(size - heard[i], 0.0)  # sums of weights, in two orders
            else:
                real[i, j] += re
                real[j, i] += re
                imag[i, j] += im
                imag[j, i] -= im


@kernel
def estep(X, start, stop, weights, steering, slope, power, noise, moments, heard, scores, sources):
    """Return score and information of rows; add to `moments` (4, m, m) and `heard` (m,) unless these are empty."""
    m = steering.shape[1]
    size = max(1, min(BLOCK, stop - start))
    block, holes, table = np.empty((2, m, size)), np.empty((m, size)), np.empty((6, m))
    prepare(steering, slope, table)
    score, information = 0.0, 0.0
    for at in range(start, stop, size):
        rows = min(size, stop - at)
        value, known, missing = complete_block(X, at, rows, weights, table, power, noise, block, holes, heard, scores, sources)
        score += value
        information += known
        if heard.size:
            add_moments(block, holes, rows, missing, moments)
    return score, information


@kernel
def steered(x, steering, slope):
    """Fill in exp(i x k) for the sensors k of a uniform linear array, and its derivative."""
    for k in range(steering.shape[1]):
        steering[0, k], steering[1, k] = np.cos(x * k), np.sin(x * k)
        slope[0, k], slope[1, k] = -k * steering[1, k], k * steering[0, k]


@helper
def _derivatives(lags, x):
    """Value, first and second derivative of the sum over l of lags[0, l] cos(l x) + lags[1, l] sin(l x)."""
    turn_r, turn_i = np.cos(x), np.sin(x)
    c, s = 1.0, 0.0
    value, first, second = lags[0, 0], 0.0, 0.0
    for lag in range(1, lags.shape[1]):
        c, s = c * turn_r - s * turn_i, s * turn_r + c * turn_i
        along = lags[0, lag] * c + lags[1, lag] * s
        value += along
        first += lag * (lags[1, lag] * c - lags[0, lag] * s)
        second -= lag * lag * along
    return value, first, second


@helper
def _summit(lags, low, x, high):
    """The maximum between low and high, where x is higher than both: Newton's steps, halving where they lead astray."""
    for _ in range(STEPS):
        _, first, second = _derivatives(lags, x)
        if first > 0.0:
            low = x
        else:
            high = x
        after = x - first / second if second < 0.0 else low - 1.0
        if not low <= after <= high:
            after = 0.5 * (low + high)
        done = abs(after - x) <= 1e-14
        x = after
        if done:
            break
    return x


@kernel
def linear_peak(real, imag, turns, limit, lags, work):
    """Where a^H S a is largest for a uniform linear array, within +- limit: a trigonometric polynomial in the sums over lags.

    `turns` (2, g) are cosine and sine of the points of the grid from -limit to limit, `work` (3, g) is scratch. Every summit of
    the grid is climbed that could be the highest.
    """
    m, points = real.shape[0], turns.shape[1]
    lags[...] = 0.0
    for i in range(m):
        lags[0, 0] += real[i, i]
        for j in range(i):
            lags[0, i - j] += 2.0 * real[i, j]
            lags[1, i - j] += 2.0 * imag[i, j]
    values, c, s = work
    for g in range(points):
        values[g], c[g], s[g] = lags[0, 0], 1.0, 0.0
    for lag in range(1, m):
        re, im = lags[0, lag], lags[1, lag]
        for g in range(points):
            c[g], s[g] = c[g] * turns[0, g] - s[g] * turns[1, g], s[g] * turns[0, g] + c[g] * turns[1, g]
            values[g] += re * c[g] + im * s[g]
    highest = values.max()
    apart = 2.0 * limit / (points - 1)
    best, place = -np.inf, 0.0
    for g in range(points):
        low, high = max(g - 1, 0), min(g + 1, points - 1)
        if values[g] < NEAR * highest or values[g] < values[low] or values[g] < values[high]:
            continue
        x = _summit(lags, low * apart - limit, g * apart - limit, high * apart - limit)
        height = _derivatives(lags, x)[0]
        if height > best:
            best, place = height, x
    return place


@kernel
def split_power(real, imag, count, steering):
    """Power of the source and of the noise in closed form, given the moments of so many rows and the steering vector."""
    m = real.shape[0]
    trace, along, gain = 0.0, 0.0, 0.0
    for i in range(m):
        ar, ai = steering[0, i], steering[1, i]
        gain += ar * ar + ai * ai
        trace += real[i, i]
        along += (ar * ar + ai * ai) * real[i, i]
        for j in range(i):
            br, bi = steering[0, j], steering[1, j]
            along += 2.0 * ((ar * br + ai * bi) * real[i, j] + (ai * br - ar * bi) * imag[i, j])
    along /= gain * count
    trace /= count
    floor = max(QUIETEST * trace / m, SILENCE)
    noise = max((trace - along) / (m - 1), floor)
    if along <= noise:
        return 0.0, max(trace / m, floor)
    return (along - noise) / gain, noise


@kernel
def sweep_linear(
    X, weights, turns, limit, steps, gains, n_eff, real, imag, heard, information, mean_real, mean_imag, mean_heard,
    mean_information, scores,
):  # fmt: skip
    """Learn row by row before a uniform linear array: E-step, fold and search. Statistics, and their averages, are changed."""
    m = real.shape[0]
    block, holes, table = np.empty((2, m, 1)), np.empty((m, 1)), np.empty((6, m))
    steering, slope, lags, work = np.empty((2, m)), np.empty((2, m)), np.empty((2, m)), np.empty((3, turns.shape[1]))
    moments, seen, row_real, row_imag = np.empty((4, m, m)), np.empty(m), np.empty((m, m)), np.empty((m, m))
    nobody = np.empty((0, 2))
    for row in range(X.shape[0]):
        steered(linear_peak(real, imag, turns, limit, lags, work), steering, slope)
        prepare(steering, slope, table)
        power, noise = split_power(real, imag, 1.0, steering)
        moments[...] = 0.0
        seen[...] = 0.0
        row_real[...] = 0.0
        row_imag[...] = 0.0
        _, known, missing = complete_block(X, row, 1, weights, table, power, noise, block, holes, seen, scores, nobody)
        add_moments(block, holes, 1, missing, moments)
        weight = weights[row] if weights.size else 1.0
        gather_moments(moments, steering, noise, weight, seen, row_real, row_imag)
        step = steps[row]
        gain = step / weight
        for i in range(m):
            heard[i] = (1.0 - step) * heard[i] + gain * seen[i]
            for j in range(m):
                real[i, j] = (1.0 - step) * real[i, j] + gain * row_real[i, j]
                imag[i, j] = (1.0 - step) * imag[i, j] + gain * row_imag[i, j]
        information[0] = (1.0 - step) * information[0] + gain * known
        n_eff = 1.0 / ((1.0 - step) ** 2 / n_eff + step * step / weight)
        if gains.size:
            for i in range(m):
                mean_heard[i] += gains[row] * (heard[i] - mean_heard[i])
                for j in range(m):
                    mean_real[i, j] += gains[row] * (real[i, j] - mean_real[i, j])
                    mean_imag[i, j] += gains[row] * (imag[i, j] - mean_imag[i, j])
            mean_information[0] += gains[row] * (information[0] - mean_information[0])
    return n_eff
