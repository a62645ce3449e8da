"""Scratch memory of a plan's own, laid out as its threads walk over it."""
