"""Arrays in, arrays out: the only room that imports numba."""
