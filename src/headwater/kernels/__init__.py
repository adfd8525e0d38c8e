"""Compiled functions of arrays: the only package that imports numba."""
