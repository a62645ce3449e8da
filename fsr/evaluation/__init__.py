"""The order of the stages; guard, timing, verdict."""
