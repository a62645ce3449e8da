"""Actions on kernels whose work stands in functions that they call: what an action finds nothing to do with in a
kernel, it is asked about again with those functions written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import replace_kernel
from fsr.transform.inlining.calls import inlined
from fsr.transform.instantiated import kernels_of
from fsr.transform.protocol import Action, Move, Subject


@dataclass(frozen=True, slots=True)
class Inlining:
    """An action that offers moves on the kernels with calls written out, too, where it offers none on them as they
    are."""

    action: Action

    @property
    def name(self) -> str:
        return self.action.name

    @property
    def aims_at(self) -> frozenset[str]:
        return self.action.aims_at

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The action's, and behind them those of loops and other parts that only the calls have."""
        found = self._as_called(subject)
        yield from found
        parts = {m.region for m in found}
        whole = any("loop:" not in part and "shared:" not in part for part in parts)  # it has been found in all of it
        other = None if whole else _with_calls(subject)
        if other is not None:
            yield from (m for m in self.action.moves(other) if m.region not in parts)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate that the action makes, of the text that the move was offered for."""
        other = _with_calls(subject)
        called = other is None or move.region in {m.region for m in self._as_called(subject)}
        return self.action.apply(subject if called or other is None else other, move)

    def _as_called(self, subject: Subject) -> list[Move]:
        return subject.once(("as called", self.name), lambda: list(self.action.moves(subject)))


def _with_calls(subject: Subject) -> Subject | None:
    """The subject with calls written out; None where there are none."""
    return subject.once("calls written out", lambda: _written_out(subject))


def _written_out(subject: Subject) -> Subject | None:
    source = subject.candidate.source
    for name, kernel in parse_kernels(source).items():
        form = inlined(kernel, source) if name in subject.kernels and kernel.span is not None else kernel
        if form is not kernel:
            source = replace_kernel(source, parse_kernels(source)[name], form)
    if source == subject.candidate.source:
        return None
    kernels = kernels_of(source)
    return replace(subject, candidate=replace(subject.candidate, source=source), kernels=kernels)
