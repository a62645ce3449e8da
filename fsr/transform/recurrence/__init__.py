"""Recurrences: a block's loop over time, with barriers, as one launch a step, over as many blocks as the GPU holds."""
