"""What elements of an array hold while threads fold them pairwise: trees over what they held at first."""

from __future__ import annotations

from dataclasses import dataclass, field

_FIRST_INNER = 1 << 32  # numbers below are elements


@dataclass
class Nodes:
    """Trees by number, equal ones once. An element that nothing was folded into is its own number."""

    inner: dict[tuple[int, int], int] = field(default_factory=dict)
    leaves: dict[int, int] = field(default_factory=dict)

    def of(self, left: int, right: int) -> int:
        """The tree of two."""
        number = self.inner.setdefault((left, right), _FIRST_INNER + len(self.inner))
        self.leaves[number] = self.size(left) + self.size(right)
        return number

    def size(self, number: int) -> int:
        """How many leaves a tree has."""
        return self.leaves.get(number, 1)

    def halving(self, count: int, first: int = 0, apart: int = 1) -> int:
        """The tree over ``count`` elements, ``apart`` from one to the next, whose levels fold the upper half into the
        lower."""
        level = [first + apart * n for n in range(count)]
        while len(level) > 1:
            half = len(level) // 2
            level = [self.of(a, b) for a, b in zip(level[:half], level[half:], strict=True)]
        return level[0]

    def doubling(self, count: int) -> int:
        """The tree over the first ``count`` elements whose levels fold neighbours."""
        level = list(range(count))
        while len(level) > 1:
            level = [self.of(a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
        return level[0]
