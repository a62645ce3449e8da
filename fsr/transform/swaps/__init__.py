"""Rows that a loop copies back at the end of every turn: they are swapped instead."""
