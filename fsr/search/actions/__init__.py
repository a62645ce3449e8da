"""Deterministic rewrites of the loop-nest form."""
