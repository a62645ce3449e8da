"""Global atomics gathered a block at a time."""
