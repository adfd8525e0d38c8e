"""Sums over groups of rows, and the longest direction of each group."""

from __future__ import annotations

from headwater.kernels._jit import kernel


@kernel
def add_groups(rows, weights, groups, sums):
    """Add every row, by its weight, to the sum of its group."""
    for i in range(len(rows)):
        g, weight = groups[i], weights[i]
        for j in range(rows.shape[1]):
            sums[g, j] += weight * rows[i, j]


@kernel
def turn_directions(rows, weights, groups, centres, directions, sums):
    """One step of the power method for every group: multiply its direction by the scatter of its rows about the centre."""
    for i in range(len(rows)):
        g = groups[i]
        along = 0.0
        for j in range(rows.shape[1]):
            along += (rows[i, j] - centres[g, j]) * directions[g, j]
        along *= weights[i]
        for j in range(rows.shape[1]):
            sums[g, j] += along * (rows[i, j] - centres[g, j])


@kernel
def part_groups(rows, groups, centres, directions, sides):
    """Write the side of its group's centre on which every row lies: 2 g or 2 g + 1."""
    for i in range(len(rows)):
        g = groups[i]
        along = 0.0
        for j in range(rows.shape[1]):
            along += (rows[i, j] - centres[g, j]) * directions[g, j]
        sides[i] = 2 * g + (1 if along > 0.0 else 0)
