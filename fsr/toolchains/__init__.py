"""Text to binary; no device needed."""
