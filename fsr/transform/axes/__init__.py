"""Axes of a launch for the parts of a number that its threads take apart."""
