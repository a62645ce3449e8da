"""Recognised computations and their known-good implementations."""
