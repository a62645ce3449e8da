"""From what happens in folders to which kernels have a new content."""
