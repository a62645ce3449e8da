"""What a kernel promises: read, validate, infer, show."""
