"""Several neighbouring elements in one access."""
