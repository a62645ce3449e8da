"""Several threads' lines of two operands in one thread, from tiles of shared memory."""
