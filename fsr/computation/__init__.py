"""What a kernel computes: statements over iteration domains, without threads and blocks."""
