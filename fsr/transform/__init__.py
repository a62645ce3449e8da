"""Deterministic rewrites: a family a folder, in which what recognises, what emits and the action stand together."""
