"""Tiled matrix products."""
