"""Where proposals come from: deterministic moves, given candidates, models; several side by side."""
