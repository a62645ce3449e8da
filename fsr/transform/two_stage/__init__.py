"""Turns that few blocks go through, shared by many: partial states to scratch memory, then a launch that merges."""
