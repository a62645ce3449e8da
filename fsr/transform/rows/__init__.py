"""Rows shared out to warps and blocks."""
