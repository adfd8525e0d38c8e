"""Bayesian moment matching of K Gaussians (paper 003), row by row inside one kernel: E-step, update, projection.

Per component the belief is Dirichlet `alpha`, and `kappa`, `dof`, mean and V of a Normal-Wishart (`match_full`), or of a
Normal-Gamma per column (`match_diag`; one for all columns if spherical). The three masses of a component drift apart and may
shrink. The totals that come in and go out are the natural parameters of the belief less those of the prior, so they add.
A row costs O(K d^2), and no row allocates anything.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel, routine
from headwater.kernels.fastmath import log, log_gamma_ratio, squared_gamma_ratio
from headwater.kernels.gaussian_rank_one import drift, refactor, update_factor, update_scale, whiten_row
from headwater.kernels.gaussian_readout import ROUNDING
from headwater.kernels.gaussian_sweep import fold_factors, responsibilities_row
from headwater.kernels.lanes import padded
from headwater.kernels.mixture import LOWEST
from headwater.kernels.projection import SECOND_MOMENTS, project_dirichlet, project_gamma, project_wishart

# A component does not learn a row that adds no more than this part of its mass, since the change is no larger than that.
NEGLIGIBLE = 1e-13
# After this many rank-one updates a factor is compared with V, and computed again if it has drifted farther than this.
CHECK_AFTER = 256
DRIFT = 1e-10

# Squared distances end here, and beyond the second one the update of a factor would overflow.
FARTHEST = 1e300
OVERFLOWS = 1e280
# Degrees of freedom never fall below those with which a precision, and a covariance just so, have a mean.
LEAST_DOF = 2.01
# A heavy row that may be of any component leaves a belief worth less than the prior. Totals are differences from the
# prior, so weights and means keep this part of it, which rounding cannot take from them.
LEAST_PART = 1e-9

LOG_PI = math.log(math.pi)


@helper
def others(p, k):
    """1 - p[k]; where it is small, summed from the others so that it keeps its digits."""
    if p[k] <= 0.5:
        return 1.0 - p[k]
    total = 0.0
    for other in range(p.size):
        if other != k:
            total += p[other]
    return total


@helper
def pulled(keep, kappa, kappa0, mean, mean0):
    """Mean of the belief keep * (kappa, mean) + (1 - keep) * (kappa0, mean0), and what their distance adds to V."""
    away = (1.0 - keep) * kappa0
    after = keep * kappa + away
    gap = mean - mean0
    return mean - away / after * gap, keep * kappa * away / after


@routine
def believe_full(prior, concentration, count, mean_count, dof_count, first, second, alpha, kappa, dof, mean, scale):
    """Write prior plus totals: Dirichlet, kappa, degrees of freedom, means, and V in its lower triangle."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = first.shape
    for k in range(n_components):
        alpha[k] = concentration[k] + count[k]
        kappa[k] = kappa0 + mean_count[k, 0]
        dof[k] = nu0 + dof_count[k, 0]
        for i in range(width):
            mean[k, i] = (kappa0 * prior_mean[i] + first[k, i]) / kappa[k]
        for i in range(width):
            for j in range(i + 1):
                value = second[k, i, j] + scale0[i, j] + kappa0 * prior_mean[i] * prior_mean[j]
                scale[k, i, j] = value - kappa[k] * mean[k, i] * mean[k, j]
                if i == j:
                    scale[k, i, i] = max(scale[k, i, i], ROUNDING * value)


@routine
def forget_full(keep, prior, concentration, alpha, kappa, dof, mean, scale):
    """Pull the belief towards the prior: its natural parameters are keep times its own and the rest the prior's."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = mean.shape
    away = 1.0 - keep
    for k in range(n_components):
        alpha[k] = keep * alpha[k] + away * concentration[k]
        for i in range(width):
            for j in range(i + 1):
                _, between = pulled(keep, kappa[k], kappa0, mean[k, i], prior_mean[i])
                gap = (mean[k, i] - prior_mean[i]) * (mean[k, j] - prior_mean[j])
                scale[k, i, j] = keep * scale[k, i, j] + away * scale0[i, j] + between * gap
        for i in range(width):
            mean[k, i], _ = pulled(keep, kappa[k], kappa0, mean[k, i], prior_mean[i])
        kappa[k] = keep * kappa[k] + away * kappa0
        dof[k] = keep * dof[k] + away * nu0


@routine
def write_full(prior, concentration, alpha, kappa, dof, mean, scale, count, mean_count, dof_count, first, second):
    """Write the totals of a belief: its natural parameters less those of the prior."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = first.shape
    for k in range(n_components):
        count[k] = alpha[k] - concentration[k]
        mean_count[k, 0] = kappa[k] - kappa0
        dof_count[k, 0] = dof[k] - nu0
        for i in range(width):
            first[k, i] = kappa[k] * mean[k, i] - kappa0 * prior_mean[i]
            for j in range(i + 1):
                moment = scale[k, i, j] + kappa[k] * mean[k, i] * mean[k, j]
                second[k, i, j] = moment - (scale0[i, j] + kappa0 * prior_mean[i] * prior_mean[j])


@kernel
def match_full(
    X, weights, labels, origin, weight_projection, dof_projection, concentration, prior, steps, n_eff, count, mean_count,
    dof_count, first, second, scores,
):  # fmt: skip
    """Learn the rows, changing the totals in place; return n_eff afterwards."""
    n_components, width = first.shape
    lowest = min(prior[2], width - 1.0 + LEAST_DOF)
    p, newton = np.empty(n_components), np.empty((2, n_components))
    wide = padded(width)
    apart, turned, pivots = np.zeros((n_components, wide)), np.empty((n_components, width)), np.empty((n_components, width))
    distance = np.empty(n_components)
    alpha, kappa, dof = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    mean = np.empty((n_components, width))
    scale, factor = np.zeros((n_components, width, wide)), np.zeros((n_components, width, wide))
    log_det, constant, stretch = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    updates, log_alpha = np.zeros(n_components), np.empty(n_components)
    x, noise, work = np.empty(width), np.empty(width), np.empty(wide)

    believe_full(prior, concentration, count, mean_count, dof_count, first, second, alpha, kappa, dof, mean, scale)
    for k in range(n_components):
        log_det[k] = refactor(scale[k], factor[k], pivots[k], noise)
        stretch[k] = kappa[k] / (kappa[k] + 1.0)
        constant[k] = student_constant(dof[k], stretch[k], log_det[k], width)
        log_alpha[k] = math.log(alpha[k])
    common = 0.0  # the part of log_alpha by which all weights have shrunk

    for row in range(X.shape[0]):
        for j in range(width):
            x[j] = X[row, j] - origin[j]
        for k in range(n_components):
            for i in range(width):
                apart[k, i] = x[i] - mean[k, i]
            distance[k] = min(whiten_row(factor[k], pivots[k], apart[k], turned[k]), FARTHEST)
        for k in range(n_components):
            tail = 0.5 * (dof[k] + 1.0) * log(1.0 + stretch[k] * distance[k])
            p[k] = max(log_alpha[k] + constant[k] - tail, LOWEST)  # and a probability in a moment
        score = responsibilities_row(p, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score + common - log(alpha.sum())
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        weight *= gain
        if keep != 1.0:
            forget_full(keep, prior, concentration, alpha, kappa, dof, mean, scale)
            for k in range(n_components):
                for i in range(width):
                    apart[k, i] = x[i] - mean[k, i]
                log_det[k] = refactor(scale[k], factor[k], pivots[k], noise)
                distance[k] = min(whiten_row(factor[k], pivots[k], apart[k], turned[k]), FARTHEST)
        factor_of_all = project_dirichlet(p, weight, weight_projection, alpha, newton)
        common += log(factor_of_all)
        for k in range(n_components):
            untouched = keep == 1.0 and p[k] * weight <= NEGLIGIBLE * kappa[k]
            raised = alpha[k] < LEAST_PART * concentration[k]
            alpha[k] = max(alpha[k], LEAST_PART * concentration[k])
            if raised or not untouched or factor_of_all == 1.0:
                log_alpha[k] = log(alpha[k]) - common
            if untouched:
                continue
            rest = others(p, k)
            kappa[k], after, g, s, t = project_wishart(
                p[k], rest, weight, width, kappa[k], dof[k], distance[k], dof_projection, lowest
            )
            kappa[k] = max(kappa[k], LEAST_PART * prior[1])
            dof[k] = after
            update_scale(scale[k], apart[k], s, t)
            if distance[k] < OVERFLOWS:
                grown = update_factor(factor[k], pivots[k], turned[k], s, t, work)
                log_det[k] += width * log(s) + log(grown)
            else:
                log_det[k] = refactor(scale[k], factor[k], pivots[k], noise)
            for i in range(width):
                mean[k, i] += g * apart[k, i]
            updates[k] += 1
            if updates[k] >= CHECK_AFTER:
                updates[k] = 0
                if drift(scale[k], factor[k], pivots[k], log_det[k], apart[k], turned[k], work) > DRIFT:
                    log_det[k] = refactor(scale[k], factor[k], pivots[k], noise)
            stretch[k] = kappa[k] / (kappa[k] + 1.0)
            constant[k] = student_constant(dof[k], stretch[k], log_det[k], width)

    write_full(prior, concentration, alpha, kappa, dof, mean, scale, count, mean_count, dof_count, first, second)
    return n_eff


@helper
def student_constant(dof, stretch, log_det, width):
    """Log of what stands before the tail of the Student-t density of the next row."""
    gammas = log_gamma_ratio(0.5 * (dof + 1.0 - width), 0.5 * width)
    return gammas + 0.5 * (width * (log(stretch) - LOG_PI) - log_det)


@helper
def believe_diag(prior, concentration, count, mean_count, dof_count, first, second, alpha, kappa, shape, mean, scale):
    """Write prior plus totals: Dirichlet, kappa, shapes of the Gammas, means, and V of every column."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = first.shape
    columns = width // mean_count.shape[1]
    for k in range(n_components):
        alpha[k] = concentration[k] + count[k]
        for group in range(mean_count.shape[1]):
            kappa[k, group] = kappa0 + mean_count[k, group]
            shape[k, group] = 0.5 * columns * (nu0 + dof_count[k, group])
            for j in range(group * columns, (group + 1) * columns):
                mean[k, j] = (kappa0 * prior_mean[j] + first[k, j]) / kappa[k, group]
                value = second[k, j] + scale0[j] + kappa0 * prior_mean[j] ** 2
                scale[k, j] = max(value - kappa[k, group] * mean[k, j] ** 2, ROUNDING * value)


@helper
def forget_diag(keep, prior, concentration, alpha, kappa, shape, mean, scale):
    """Pull the belief towards the prior, as above."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = mean.shape
    columns = width // kappa.shape[1]
    away = 1.0 - keep
    for k in range(n_components):
        alpha[k] = keep * alpha[k] + away * concentration[k]
        for group in range(kappa.shape[1]):
            for j in range(group * columns, (group + 1) * columns):
                gap = mean[k, j] - prior_mean[j]
                mean[k, j], between = pulled(keep, kappa[k, group], kappa0, mean[k, j], prior_mean[j])
                scale[k, j] = keep * scale[k, j] + away * scale0[j] + between * gap * gap
            kappa[k, group] = keep * kappa[k, group] + away * kappa0
            shape[k, group] = keep * shape[k, group] + away * 0.5 * columns * nu0


@helper
def write_diag(prior, concentration, alpha, kappa, shape, mean, scale, count, mean_count, dof_count, first, second):
    """Write the totals of a belief, as above."""
    prior_mean, kappa0, nu0, scale0, _, _, _ = prior
    n_components, width = first.shape
    columns = width // mean_count.shape[1]
    for k in range(n_components):
        count[k] = alpha[k] - concentration[k]
        for group in range(mean_count.shape[1]):
            mean_count[k, group] = kappa[k, group] - kappa0
            dof_count[k, group] = shape[k, group] / (0.5 * columns) - nu0
            for j in range(group * columns, (group + 1) * columns):
                first[k, j] = kappa[k, group] * mean[k, j] - kappa0 * prior_mean[j]
                moment = scale[k, j] + kappa[k, group] * mean[k, j] ** 2
                second[k, j] = moment - (scale0[j] + kappa0 * prior_mean[j] ** 2)


@kernel
def match_diag(
    X, weights, labels, origin, weight_projection, dof_projection, concentration, prior, steps, n_eff, count, mean_count,
    dof_count, first, second, scores,
):  # fmt: skip
    """The same for diagonal covariance, and for spherical: masses have a column for every column of the rows, or one for all.

    A precision is Gamma(shape, V / 2), or Gamma(shape, sum of V / 2) if all columns share it.
    """
    n_components, width = first.shape
    groups = mean_count.shape[1]
    columns = width // groups  # that share a precision
    lowest = min(0.5 * prior[2] * columns, 0.5 * LEAST_DOF)
    p, newton = np.empty(n_components), np.empty((2, n_components))
    alpha, constant = np.empty(n_components), np.empty(n_components)
    kappa, shape, stretch = np.empty(mean_count.shape), np.empty(mean_count.shape), np.empty(mean_count.shape)
    rate, distance = np.empty(mean_count.shape), np.empty(mean_count.shape)  # twice the rate, and |D|^2 over it
    mean, apart, scale = np.empty(first.shape), np.empty(first.shape), np.empty(first.shape)

    believe_diag(prior, concentration, count, mean_count, dof_count, first, second, alpha, kappa, shape, mean, scale)
    for k in range(n_components):
        constant[k] = gamma_constant(k, columns, kappa, shape, scale, rate, stretch)

    for row in range(X.shape[0]):
        for k in range(n_components):
            tail, total = 0.0, 0.0
            for j in range(width):
                apart[k, j] = X[row, j] - origin[j] - mean[k, j]
            if columns == 1:
                for j in range(width):
                    distance[k, j] = min(apart[k, j] ** 2 / rate[k, j], FARTHEST)
                for j in range(width):
                    tail += (shape[k, j] + 0.5) * log(1.0 + stretch[k, j] * distance[k, j])
            else:
                for j in range(width):
                    total += apart[k, j] ** 2
                distance[k, 0] = min(total / rate[k, 0], FARTHEST)
                tail = (shape[k, 0] + 0.5 * width) * log(1.0 + stretch[k, 0] * distance[k, 0])
            p[k] = max(log(alpha[k]) + constant[k] - tail, LOWEST)  # and a probability in a moment
        score = responsibilities_row(p, labels[row] if labels.size else -1)
        if scores.size:
            scores[row] = score - log(alpha.sum())
        weight = weights[row] if weights.size else 1.0
        n_eff, keep, gain = fold_factors(n_eff, steps[row], weight)
        weight *= gain
        if keep != 1.0:
            forget_diag(keep, prior, concentration, alpha, kappa, shape, mean, scale)
            for k in range(n_components):
                for group in range(groups):
                    here, total = 0.0, 0.0
                    for j in range(group * columns, (group + 1) * columns):
                        apart[k, j] = X[row, j] - origin[j] - mean[k, j]
                    for j in range(group * columns, (group + 1) * columns):
                        here += scale[k, j]
                        total += apart[k, j] ** 2
                    rate[k, group] = here
                    distance[k, group] = min(total / here, FARTHEST)
        project_dirichlet(p, weight, weight_projection, alpha, newton)
        for k in range(n_components):
            alpha[k] = max(alpha[k], LEAST_PART * concentration[k])
            if keep == 1.0 and p[k] * weight <= NEGLIGIBLE * kappa[k, 0]:
                continue
            rest = others(p, k)
            if columns == 1 and dof_projection == SECOND_MOMENTS:  # the same as below, where LLVM can make vectors of it
                for j in range(width):
                    kappa[k, j], shape[k, j], g, s, t = project_gamma(
                        p[k], rest, weight, 1, kappa[k, j], shape[k, j], distance[k, j], SECOND_MOMENTS, lowest
                    )
                    mean[k, j] += g * apart[k, j]
                    scale[k, j] = s * (scale[k, j] + t * apart[k, j] ** 2)
            else:
                for group in range(groups):
                    kappa[k, group], shape[k, group], g, s, t = project_gamma(
                        p[k],
                        rest,
                        weight,
                        columns,
                        kappa[k, group],
                        shape[k, group],
                        distance[k, group],
                        dof_projection,
                        lowest,
                    )
                    for j in range(group * columns, (group + 1) * columns):
                        mean[k, j] += g * apart[k, j]
                        scale[k, j] = s * (scale[k, j] + t * apart[k, j] ** 2)
            for group in range(groups):
                kappa[k, group] = max(kappa[k, group], LEAST_PART * prior[1])
            constant[k] = gamma_constant(k, columns, kappa, shape, scale, rate, stretch)

    write_diag(prior, concentration, alpha, kappa, shape, mean, scale, count, mean_count, dof_count, first, second)
    return n_eff


@helper
def gamma_constant(k, columns, kappa, shape, scale, rate, stretch):
    """Refresh the rates and stretches of a component; return what stands before its tails."""
    total = 0.0
    if columns == 1:
        for j in range(scale.shape[1]):
            rate[k, j] = scale[k, j]
            stretch[k, j] = kappa[k, j] / (kappa[k, j] + 1.0)
        for j in range(scale.shape[1]):
            total += log(squared_gamma_ratio(shape[k, j]) * stretch[k, j] / rate[k, j])
        return 0.5 * (total - scale.shape[1] * LOG_PI)
    for j in range(columns):
        total += scale[k, j]
    rate[k, 0] = total
    stretch[k, 0] = kappa[k, 0] / (kappa[k, 0] + 1.0)
    return log_gamma_ratio(shape[k, 0], 0.5 * columns) + 0.5 * columns * (log(stretch[k, 0] / rate[k, 0]) - LOG_PI)
