"""E-step of K Gaussians on rows that were measured with errors of known covariance: extreme deconvolution.

Bovy, Hogg and Roweis 2011: what is observed of row x is u + e with e ~ N(0, S) of its own, and u of component k is
N(mu, Sigma). With T = Sigma_oo + S_oo = L L' over the observed columns o, z = L^-1 (x - mu)_o and W = L^-1 Sigma_o, the
log-density is -(z'z + log|T| + |o| log 2 pi) / 2, the component expects u = mu + W' z, with covariance Sigma - W'W, and that
is what enters the moments. Of columns whose errors are next to none (`exact`) these differences would hold only rounding: there
u is x - S T^-1 (x - mu), the variance is at most that of the error, and covariances are none. A gap is an infinite error.
Beside the moments there are `observed` (K, d), the responsibility for values that were there, and `known` (K, d), in which a
value counts by the part of its variance that was learned of u.

`extra` (K,) and `column_extra` (K, d, for observed columns) are what a readout adds to the Gaussian log-density. Where columns
are independent given the component (`diagonal`), the second moments are (K, d), and missing columns are left out of them.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.gaussian_sweep import responsibilities_row

LEAST_PIVOT = 1e-14  # of a diagonal element: a smaller one is rounding
LEAST_ERROR = 1e-12  # of a variance: a difference of less cannot be told from rounding
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@helper
def list_observed(missing, row, places):
    """List the columns that were observed of a row; return how many they are."""
    number = 0
    for j in range(missing.shape[1]):
        if not missing[row, j]:
            places[number] = j
            number += 1
    return number


@helper
def factorize_sum(covariance, variances, covariances, row, places, m, root):
    """Write the Cholesky factor of Sigma_oo + S_oo; return half the log-determinant."""
    half = 0.0
    for a in range(m):
        for c in range(a + 1):
            value = covariance[places[a], places[c]]
            if covariances.size:
                value += covariances[row, places[a], places[c]]
            elif a == c:
                value += variances[row, places[a]]
            whole = value
            for q in range(c):
                value -= root[a, q] * root[c, q]
            if a == c:
                root[a, a] = math.sqrt(max(value, LEAST_PIVOT * whole))
                half += math.log(root[a, a])
            else:
                root[a, c] = value / root[c, c]
    return half


@helper
def whiten_columns(covariance, places, m, root, white):
    """Write W = L^-1 Sigma_o (m, d)."""
    width = covariance.shape[0]
    for a in range(m):
        inverse = 1.0 / root[a, a]
        for j in range(width):
            white[a, j] = covariance[places[a], j]
        for q in range(a):
            times = root[a, q]
            for j in range(width):
                white[a, j] -= times * white[q, j]
        for j in range(width):
            white[a, j] *= inverse


@helper
def list_exact(covariance, variances, covariances, row, places, m, error, exact):
    """Write the variances of the errors of a row, and which of them are next to none; return whether some are."""
    exact[:], some = False, False
    for j in range(error.size):
        error[j] = covariance[j, j]  # of a gap, beyond which nothing is left to expect
    for a in range(m):
        j = places[a]
        error[j] = covariances[row, j, j] if covariances.size else variances[row, j]
        exact[j] = error[j] <= LEAST_ERROR * covariance[j, j]
    for a in range(m):
        some |= exact[places[a]]
    return some


@helper
def expect_exact(values, variances, covariances, row, places, m, root, z, exact, solved, u):
    """Write what a component expects of the columns without errors to speak of: x - S T^-1 (x - mu)."""
    for a in range(m - 1, -1, -1):
        value = z[a]
        for q in range(a + 1, m):
            value -= root[q, a] * solved[q]
        solved[a] = value / root[a, a]
    for a in range(m):
        j = places[a]
        if not exact[j]:
            continue
        shift = 0.0
        if covariances.size:
            for q in range(m):
                shift += covariances[row, j, places[q]] * solved[q]
        else:
            shift = variances[row, j] * solved[a]
        u[j] = values[a] - shift


@helper
def expect_columns(mean, white, z, m, u):
    """Write what a component expects of a row."""
    for j in range(mean.size):
        value = mean[j]
        for a in range(m):
            value += white[a, j] * z[a]
        u[j] = value


@helper
def add_expected(share, covariance, white, m, missing, row, diagonal, error, exact, u, first, second, observed, known):
    """Add what a component expects of a row to its moments."""
    for j in range(u.size):
        there = not missing[row, j]
        left = covariance[j, j]
        for a in range(m):
            left -= white[a, j] * white[a, j]
        left = min(max(left, 0.0), error[j])
        observed[j] += share if there else 0.0
        known[j] += share * max(1.0 - left / covariance[j, j], 0.0)
        if diagonal:
            if there:
                first[j] += share * u[j]
                second[0, j] += share * (u[j] * u[j] + left)
            continue
        first[j] += share * u[j]
        for i in range(j):
            value = 0.0 if exact[j] or exact[i] else covariance[j, i]
            for a in range(0 if exact[j] or exact[i] else m):
                value -= white[a, j] * white[a, i]
            second[j, i] += share * (u[j] * u[i] + value)
        second[j, j] += share * (u[j] * u[j] + left)


@kernel
def estep_matrix_noise(
    X, missing, variances, covariances, start, stop, weights, labels, origin, means, sigma, log_weights, extra, column_extra,
    diagonal, scores, responsibilities, given, count, first, second, observed, known,
):  # fmt: skip
    """E-step by matrices. `sigma` (K, d, d), or one for all; `second` (K, d, d), (1, d, d) or, if `diagonal`, (K, 1, d)."""
    n_components, width = means.shape
    shared = sigma.shape[0] == 1
    places = np.empty(width, dtype=np.int64)
    root = np.empty((sigma.shape[0], width, width))
    white, z, u = np.empty((width, width)), np.empty((n_components, width)), np.empty(width)
    error, exact, solved, values = np.empty(width), np.empty(width, dtype=np.bool_), np.empty(width), np.empty(width)
    log_joint = np.empty(n_components)
    total, half = 0.0, 0.0
    for row in range(start, stop):
        m = list_observed(missing, row, places)
        for k in range(n_components):
            own = 0 if shared else k
            if k == own:
                half = factorize_sum(sigma[own], variances, covariances, row, places, m, root[own])
            distance, more = 0.0, log_weights[k] + extra[k]
            for a in range(m):
                j = places[a]
                value = X[row, j] - origin[j] - means[k, j]
                for q in range(a):
                    value -= root[own, a, q] * z[k, q]
                z[k, a] = value / root[own, a, a]
                distance += z[k, a] * z[k, a]
                more += column_extra[k, j]
            log_joint[k] = more - half - 0.5 * distance - m * HALF_LOG_2_PI
        weight = weights[row] if weights.size else 1.0
        if given:
            for k in range(n_components):
                log_joint[k] = responsibilities[row, k]
        else:
            score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
            total += weight * score
            if scores.size:
                scores[row] = score
            if responsibilities.size:
                for k in range(n_components):
                    responsibilities[row, k] = log_joint[k]
        if not count.size:
            continue
        for k in range(n_components):
            share = weight * log_joint[k]
            if share <= 0.0:
                continue
            own = 0 if shared else k
            count[k] += share
            whiten_columns(sigma[own], places, m, root[own], white)
            into = 0 if second.shape[0] == 1 else k
            expect_columns(means[k], white, z[k], m, u)
            if list_exact(sigma[own], variances, covariances, row, places, m, error, exact):
                for a in range(m):
                    values[a] = X[row, places[a]] - origin[places[a]]
                expect_exact(values, variances, covariances, row, places, m, root[own], z[k], exact, solved, u)
            add_expected(
                share, sigma[own], white, m, missing, row, diagonal, error, exact, u, first[k], second[into], observed[k],
                known[k],
            )  # fmt: skip
    return total


@kernel
def estep_columns_noise(
    X, missing, variances, start, stop, weights, labels, origin, means, sigma, log_weights, extra, column_extra, scores,
    responsibilities, given, count, first, second, observed, known,
):  # fmt: skip
    """E-step where columns and errors are independent: `sigma` (K, d) are variances, and so is the noise."""
    n_components, width = means.shape
    log_joint = np.empty(n_components)
    total = 0.0
    for row in range(start, stop):
        for k in range(n_components):
            value = log_weights[k] + extra[k]
            for j in range(width):
                if not missing[row, j]:
                    spread = sigma[k, j] + variances[row, j]
                    apart = X[row, j] - origin[j] - means[k, j]
                    value += column_extra[k, j] - 0.5 * (apart * apart / spread + math.log(spread)) - HALF_LOG_2_PI
            log_joint[k] = value
        weight = weights[row] if weights.size else 1.0
        if given:
            for k in range(n_components):
                log_joint[k] = responsibilities[row, k]
        else:
            score = responsibilities_row(log_joint, labels[row] if labels.size else -1)
            total += weight * score
            if scores.size:
                scores[row] = score
            if responsibilities.size:
                for k in range(n_components):
                    responsibilities[row, k] = log_joint[k]
        if not count.size:
            continue
        for k in range(n_components):
            share = weight * log_joint[k]
            count[k] += share
            for j in range(width):
                if missing[row, j] or share <= 0.0:
                    continue
                part = sigma[k, j] / (sigma[k, j] + variances[row, j])
                u = means[k, j] + part * (X[row, j] - origin[j] - means[k, j])
                first[k, j] += share * u
                second[k, j] += share * (u * u + part * variances[row, j])
                observed[k, j] += share
                known[k, j] += share * part
    return total
