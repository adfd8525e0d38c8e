"""Slow, obvious twins of the kernels for one source before an array: dense matrices, row by row."""

import numpy as np


def covariance(a, power, noise):
    return power * np.outer(a, a.conj()) + noise * np.eye(len(a))


def conditional(z, G):
    """Return mean and covariance of a complete snapshot given the sensors that are not NaN."""
    o = ~np.isnan(z)
    u = ~o
    gain = G[:, o] @ np.linalg.inv(G[np.ix_(o, o)])
    mean = gain @ z[o]
    mean[o] = z[o]
    spread = np.zeros_like(G)
    spread[np.ix_(u, u)] = (G - gain @ G[o])[np.ix_(u, u)]
    return mean, spread


def moments(X, weights, G):
    """Sum of w E[z z^H]."""
    total = np.zeros_like(G)
    for z, weight in zip(X, weights, strict=True):
        mean, spread = conditional(z, G)
        total += weight * (np.outer(mean, mean.conj()) + spread)
    return total


def log_density(z, G):
    o = ~np.isnan(z)
    if not o.any():
        return 0.0
    G, z = G[np.ix_(o, o)], z[o]
    return float(-len(z) * np.log(np.pi) - np.linalg.slogdet(G)[1] - (z.conj() @ np.linalg.solve(G, z)).real)


def source(z, a, power, noise):
    """Posterior mean of the signal, from its covariance with the observed sensors."""
    o = ~np.isnan(z)
    return power * a[o].conj() @ np.linalg.solve(covariance(a, power, noise)[np.ix_(o, o)], z[o])


def information(z, steer, x, power, noise, nudge=1e-5):
    """Fisher's information about x of the observed sensors: tr (G^-1 dG)^2."""
    o = ~np.isnan(z)
    G, after, before = (covariance(steer(x + shift)[o], power, noise) for shift in (0.0, nudge, -nudge))
    product = np.linalg.solve(G, (after - before) / (2.0 * nudge))
    return float(np.trace(product @ product).real)


def likelihood(S, steer, x, power, noise):
    """Return the objective of the M-step, per row."""
    G = covariance(steer(x), power, noise)
    return float(-np.linalg.slogdet(G)[1] - np.trace(np.linalg.solve(G, S)).real)


def maximum(S, steer, grid):
    """Return direction, power and noise of greatest likelihood: a grid over directions, then golden-section search."""
    units = np.array([steer(x) / np.linalg.norm(steer(x)) for x in grid])

    def along(x):
        u = steer(x) / np.linalg.norm(steer(x))
        return (u.conj() @ S @ u).real

    best = int(np.argmax(np.einsum("gi,ij,gj->g", units.conj(), S, units).real))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(80):
        one, other = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (one, high) if along(one) < along(other) else (low, other)
    x = 0.5 * (low + high)
    trace, first = np.trace(S).real, along(x)
    noise = (trace - first) / (len(S) - 1)
    if first < noise:
        return x, 0.0, trace / len(S)
    return x, (first - noise) / np.linalg.norm(steer(x)) ** 2, noise


def em(X, steer, grid, passes):
    """Run batch EM from a start without a source; yields parameters after every pass."""
    heard = ~np.isnan(X)
    x, power, noise = grid[0], 0.0, (np.abs(X[heard]) ** 2).mean()
    for _ in range(passes):
        S = moments(X, np.ones(len(X)), covariance(steer(x), power, noise)) / len(X)
        x, power, noise = maximum(S, steer, grid)
        yield x, power, noise
