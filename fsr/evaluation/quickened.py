"""Which build of a kernel its tests run, where the one at hand is instrumented: the plain one is several times as fast.

Recordings need the instruments; a test looks at what was written, and poison, barriers and guard pages are the same
without them. The plain build is made once runs have taken as long as that takes, so that neither cheap tests pay for a
compiler nor dear ones for instruments that nobody reads.
"""

from __future__ import annotations

import re
from functools import cached_property

from fsr.evaluation.compiling import run_toolchain, settled
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Image

BUILD_S = 0.5  # what the compiler takes for most kernels, on one core
INSTRUMENTED = 8.0  # times as long as the plain build runs the instrumented one: 3.5 to 10 were seen
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\s+(?:volatile|__volatile__)\b")


class Quickened:
    """The build of one kernel that its tests run: ``image``, at first the one that is given."""

    def __init__(self, spec: SessionSpec, candidate: Candidate, image: Image) -> None:
        self._spec, self._candidate, self._given = spec, candidate, image
        self._spent_s = 0.0
        self._open = image.instrumented and not polls(candidate.source)
        self.image = image

    def took(self, seconds: float) -> None:
        """Note what a run took."""
        self._spent_s += seconds

    @property
    def due(self) -> bool:
        """Whether the plain build would have paid by now and was not made yet."""
        return self._open and self._spent_s > BUILD_S

    def switch(self) -> None:
        """Go on with the plain build, if it can be made."""
        if self._open:
            self._open = False
            self.image = self._plain or self._given

    def like(self, instrumented: bool) -> Image | None:
        """The build that has instruments, or the one that has none; None where there is no other than the one at
        hand. Compilers fuse products with sums here and not there: what hangs on a last bit may differ."""
        if instrumented == self.image.instrumented:
            return None
        other = self._given if instrumented else self._plain
        return other if other is not None and other.instrumented == instrumented else None

    @cached_property
    def _plain(self) -> Image | None:
        built = run_toolchain(self._spec).compile(settled(self._spec, self._candidate))
        return built if isinstance(built, Image) else None

    def stay(self) -> None:
        """Go back to the build that was given, for good."""
        self._open, self.image = False, self._given


def polls(source: str) -> bool:
    """Whether a kernel may wait for a volatile variable: only the instrumented build lets other threads go on there."""
    return "volatile" in _ASSEMBLY.sub("", source)
