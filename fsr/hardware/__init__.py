"""Facts about hardware, each once and with its source: GPUs, C types."""
