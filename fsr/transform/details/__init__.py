"""Details of one kernel: arithmetic, qualifiers, flags, unrolling, padding."""
