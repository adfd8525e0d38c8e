"""Slow twins of the kernels of groups of rows, and plain k-means."""

import numpy as np


def sums_of_groups(rows, weights, groups, number):
    sums = np.zeros((number, rows.shape[1]))
    for row, weight, group in zip(rows.astype(float), weights, groups, strict=True):
        sums[group] += weight * row
    return sums


def turned_directions(rows, weights, groups, centres, directions):
    """The scatter matrix of each group about its centre, times its direction."""
    turned = np.zeros_like(directions)
    for g in range(len(centres)):
        rest = rows[groups == g].astype(float) - centres[g]
        turned[g] = (rest * weights[groups == g][:, None]).T @ rest @ directions[g]
    return turned


def sides_of_groups(rows, groups, centres, directions):
    return np.array([2 * g + int((row - centres[g]) @ directions[g] > 0.0) for row, g in zip(rows, groups, strict=True)])


def lloyd(rows, centres, steps):
    """Groups and centres after so many steps of Lloyd."""
    centres = centres.copy()
    for _ in range(steps):
        groups = np.array([np.square(row - centres).sum(axis=1).argmin() for row in rows])
        for g in range(len(centres)):
            if (groups == g).any():
                centres[g] = rows[groups == g].mean(axis=0)
    return groups, centres
