"""What a run knows of earlier ones, and what it leaves to later ones.

It is settled when the run begins and lies beside its log, so that a run that is resumed or replayed guesses as it did
before, whatever came into the cache since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fsr.cache.digest import json_digest, text_digest
from fsr.errors import StorageError
from fsr.files import Unreadable, read_file
from fsr.records import Basis, Json
from fsr.runs.caching import RunCache
from fsr.runs.context import RunContext
from fsr.runs.resuming import RunStart
from fsr.search.experience import Experience, gained
from fsr.search.prior import Prior, prior
from fsr.search.proposal import Rules, Trial
from fsr.search.traits import traits

FILE = "experience.json"


@dataclass(frozen=True, slots=True)
class Learning:
    """about: the run's kernel and device, with no moves yet. prior: the word of earlier runs."""

    about: Experience
    prior: Prior

    @classmethod
    def begun(cls, about: Experience, cache: RunCache | None) -> Self:
        """Of a new run: with what the cache holds now. Raises StorageError."""
        earlier = cache.experience() if cache is not None else []
        return cls(about, prior(about.traits, about.basis, about.hardware, earlier))

    @classmethod
    def read(cls, folder: Path, digest: str) -> Self | None:
        """Of a run that was begun before, from its folder; None where that is not what it began with."""
        try:
            text = read_file(folder / FILE, None)
            if text_digest(text) != digest:
                return None
            told = json.loads(text)
            return cls(Experience.from_json(told["about"]), Prior.from_json(told["prior"]))
        except (Unreadable, ValueError, KeyError, TypeError):
            return None

    def write(self, folder: Path) -> str:
        """Beside the log; its digest. Raises StorageError."""
        told: dict[str, Json] = {"about": self.about.to_json(), "prior": self.prior.to_json()}
        text = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
        try:
            (folder / FILE).write_bytes(text)
        except OSError as fault:
            raise StorageError(
                f"the run's folder cannot be written: {fault.strerror}", expected="a folder with space",
                where=str(folder), fix="free space or permissions there, or point FSR_HOME at another folder",
            ) from None  # fmt: skip
        return text_digest(text)

    def note(self) -> str:
        """In words, what guesses follow; '' where there is nothing to follow."""
        runs = [n.experience for n in self.prior.neighbours]
        if not runs:
            return ""
        measured, kernels = sum(e.basis == Basis.MEASURED.value for e in runs), len({e.kernel for e in runs})
        return (
            f"what is tried first follows {len(runs)} earlier run{'s' if len(runs) > 1 else ''} of {kernels} "
            f"kernel{'s' if kernels > 1 else ''} ({measured} measured); --no-cache leaves them out"
        )

    def leave(self, trials: Iterable[Trial], run: str, cache: RunCache) -> None:
        """Keep what the run's moves gained for later runs. Raises StorageError."""
        moves = gained(trials)
        if moves:
            about = self.about
            kept = Experience(about.kernel, about.traits, about.basis, about.hardware, moves)
            cache.keep_experience(run, kept)


def learning_of(context: RunContext, start: RunStart, rules: Rules, cache: RunCache | None) -> Learning | None:
    """What a new run knows; None of one that uses no cache. Raises StorageError."""
    baseline, spec = context.state.baseline, context.spec
    if cache is None or baseline is None:
        return None
    basis = Basis.PREDICTED if spec.predicted else Basis.MEASURED
    hardware = spec.target if spec.predicted else baseline.device.name
    kernel = json_digest([start.source, rules.contract.entry])
    about = traits(rules, spec.baseline, baseline.outcome)
    return Learning.begun(Experience(kernel, about, basis.value, hardware, ()), cache)
