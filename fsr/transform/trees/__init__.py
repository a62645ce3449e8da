"""Folds that a block does as a tree in shared memory."""
