"""Lanes of a warp in a thread's place, in kernels of any shape."""
