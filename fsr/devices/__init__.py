"""Load, launch, time."""
