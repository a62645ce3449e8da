"""A launch whose threads have nothing to do with one another: a step that may share a launch with others."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.records import Launch
from fsr.transform.target import Target


@dataclass(frozen=True)
class Apart:
    """The launch of a target whose block is known."""

    target: Target

    @property
    def position(self) -> int:
        """In the plan."""
        return self.target.position

    @property
    def launch(self) -> Launch:
        """The launch."""
        return self.target.launch

    @property
    def block(self) -> tuple[int, int, int]:
        """The extents of its block, x first."""
        assert self.target.block is not None
        return self.target.block
