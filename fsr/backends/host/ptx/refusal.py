"""What is not understood of inline PTX."""

from __future__ import annotations


class RefusedError(Exception):
    """An instruction without a host meaning. ``what``: its opcode; ``why``: what of it, as the end of a sentence."""

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(what, why)
        self.what, self.why = what, why
