"""Slices of global memory that threads own, copied to shared memory by the block together."""
