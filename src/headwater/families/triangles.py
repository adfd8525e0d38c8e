"""Inverses of triangular factors, whose columns may be in units of very different sizes."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array


def invert_triangles(triangles: Array) -> Array:
    """Return the inverses of triangular matrices (..., d, d).

    Columns are brought to one size first, by powers of two, which changes no digit of other matrices: products of entries
    such as 1e90 and 1e-250 leave the range of numbers, and `inv` then takes a sound factor for singular.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.families.triangles import invert_triangles
    >>> invert_triangles(np.array([[4.0, 0.0], [1.0, 0.5]])).tolist()
    [[0.25, 0.0], [-0.5, 2.0]]
    """
    exponents = np.frexp(np.diagonal(triangles, axis1=-2, axis2=-1))[1]
    inverse = np.linalg.inv(np.ldexp(triangles, -exponents[..., None, :]))
    return np.asarray(np.ldexp(inverse, -exponents[..., :, None]))
