"""Turns of loops, dealt out to other blocks."""
