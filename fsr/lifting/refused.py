"""Why something is not lifted."""


class Refused(Exception):  # noqa: N818  # an event that is told, not an error
    """What is computed cannot be told; the message says why, in a few words."""


class TooMuch(Refused):
    """More work than can be watched at these sizes."""


class Hopeless(Refused):
    """It cannot be told at other sizes, or written otherwise, either."""


class Unexplained(Refused):
    """It cannot be told at these sizes, by whatever algebra."""
