"""Several threads in one, statement by statement."""
