"""Which of a kernel's code its tests run: cases for what the others run seldom, and the lines that none runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from fsr.backends.protocol import Coverage, DeviceFault, RecordingDevice
from fsr.backends.toolchain import Toolchain
from fsr.contract.model import Contract
from fsr.errors import MissingToolError
from fsr.evaluation.compiling import settled
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Case, Image, Plan
from fsr.testgen.coverage import ELEMENTS, Covered, covering, wide_draws
from fsr.testgen.fitting import elements
from fsr.testgen.placing import place
from fsr.testgen.values import build

RUN_S = 1.0  # of one case, which is small
_SHOWN, _SHOWN_CHARS = 3, 80
SHARE, MOST_S = 0.06, 8.0  # of the run's budget for looking


@dataclass
class _Looker:
    """Runs of a candidate on the host device. ``ends``: after that none is begun, nor once ``stopped`` says so.
    ``late``: whether it was so; ``seen``: whether all cases that are known were run before."""

    contract: Contract
    plan: Plan
    host: RecordingDevice
    image: Image
    ends: float
    stopped: Callable[[], bool]
    late: bool = False
    seen: bool = False

    def each(self, known: Sequence[Case]) -> Iterator[Case]:
        """The known cases, one after another."""
        yield from known
        self.seen = not self.late

    def run(self, case: Case) -> Coverage | None:
        """What it goes through on a case; None where it does not run, or there is no time."""
        self.late |= time.monotonic() > self.ends or self.stopped()
        if self.late:
            return None
        try:
            launches, buffers = place(self.contract, self.plan, case, build(self.contract, case), some=True)
            return self.host.cover(self.image, launches, buffers, RUN_S)
        except DeviceFault:
            return None


def covered(
    spec: SessionSpec,
    host: RecordingDevice,
    candidate: Candidate,
    known: Sequence[Case],
    stopped: Callable[[], bool] = lambda: False,
) -> Covered:
    """What ``known`` cases leave out of a candidate, or the original, and cases for it. Nothing where the host device
    cannot run it, or there are no small cases."""
    image = None if spec.cramped else covering_image(host.covering_toolchain(), spec, candidate)
    if image is None:
        return Covered((), ())
    ends = time.monotonic() + min(SHARE * spec.budget_s, MOST_S)
    drawn = wide_draws(spec.contract, spec.seed, candidate.source)
    small = [c for c in known if not c.parts and elements(spec.contract, c.size_map()) <= ELEMENTS]
    looker = _Looker(spec.contract, candidate.plan, host, image, ends, stopped)
    found = covering(looker.each(small), drawn, looker.run)
    return found if looker.seen else replace(found, never=())


def covering_image(toolchain: Toolchain, spec: SessionSpec, candidate: Candidate) -> Image | None:
    """A candidate as :func:`covered` runs it, by a covering toolchain, which keeps what it builds; None where that
    cannot be."""
    try:
        built = toolchain.compile(settled(spec, candidate), instrumented=True)
    except MissingToolError:
        return None
    return built if isinstance(built, Image) else None


def in_words(source: str, lines: Sequence[int], of: str) -> str:
    """Lines of a source, by what stands there, and before it where that stands more than once or is brackets alone: the
    numbers of a file are others. ``of``: what is told of them."""
    every = [" ".join(line.split()) for line in source.splitlines()]
    alone = Counter(every)

    def text_of(n: int) -> str:
        first = n - 1 if alone[every[n - 1]] == 1 or n < 2 else n - 2
        while first and not any(map(str.isalnum, "".join(every[first:n]))):
            first -= 1
        return " ".join(every[first:n])

    texts = list(dict.fromkeys(map(text_of, lines)))
    shown = ", ".join(f"`{shorten(text, _SHOWN_CHARS, placeholder=' ...')}`" for text in texts[:_SHOWN])
    rest = len(texts) - _SHOWN
    more = f" and {rest} more line{'s' * (rest > 1)}" if rest > 0 else ""
    return f"no test of up to {ELEMENTS:,} elements runs {shown}{more} of {of}"
