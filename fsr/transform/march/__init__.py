"""Loops in which a thread marches along an axis, and hands on no more than it can find again some turns earlier."""
