"""Feature Search and Reinforcement: a faster GPU kernel, proven to do the same."""
