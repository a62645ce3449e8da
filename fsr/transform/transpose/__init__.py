"""Accesses that are contiguous along the other axis, through a shared-memory tile."""
