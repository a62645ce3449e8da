"""Neighbourhoods: marching along a column, tiles with a halo."""
