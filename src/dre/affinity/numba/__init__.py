"""Kernels for a CPU, beside the torch code that they speed up. Need numba."""
