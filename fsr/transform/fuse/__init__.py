"""Launches over the same points as one: fuse-launches."""
