"""Arithmetic in double that a float kernel falls into by a literal: ``2.0 * x`` becomes ``2.0f * x``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.tokens import skeleton
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_LITERAL = re.compile(r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])")
_DOUBLE = re.compile(r"\bdouble\b")
# In float they overflow at arguments at which a result in double, divided or scaled later, does not.
_STEEP = re.compile(r"\b(exp|exp2|exp10|expm1|pow|sinh|cosh|tgamma)\s*\(")
_LARGEST = 3.4e38
GAIN = 1.15


@dataclass(frozen=True, slots=True)
class FloatLiterals:
    """``literals``: they get an f; ``all``: what the body calls double is float, too."""

    name: str = "float-literals"
    aims_at: frozenset[str] = frozenset(["compute", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels without a double among their arguments and functions that soon overflow; none under an exact
        contract."""
        if subject.contract.tolerance.exact:
            return
        for target in targets(subject):
            if not _is_single(target):
                continue
            modes = {mode: text for mode in ("literals", "all") if (text := _changed(target, mode))}
            for n, (mode, text) in enumerate(modes.items()):
                if text not in list(modes.values())[:n]:
                    yield Move(self.name, target.region, (("mode", mode),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate in single precision."""
        target, old = target_of(subject, move), subject.candidate
        source = _changed(target, str(move.param("mode")))
        assert source
        return replace(old, source=source, actions=(*old.actions, move.name))


def _is_single(target: Target) -> bool:
    passed = {a.name: a.dtype for a in target.contract.args}
    return not any("double" in p.type or passed.get(target.passed.get(p.name, "")) == "float64"
                   for p in target.kernel.params)  # fmt: skip


def _changed(target: Target, mode: str) -> str:
    """The source with the kernel's body in single precision; '' where that is no change."""
    data = target.source.encode()
    start, end = target.kernel.span or (0, 0)
    text = data[start:end].decode()
    code = skeleton(text)
    if _STEEP.search(code):
        return ""
    places = [(m.end(), m.end(), "f") for m in _LITERAL.finditer(code) if abs(float(m[0])) < _LARGEST]
    if mode == "all":
        places += [(m.start(), m.end(), "float") for m in _DOUBLE.finditer(code)]
    for first, last, new in sorted(places, reverse=True):
        text = text[:first] + new + text[last:]
    return (data[:start].decode() + text + data[end:].decode()) if places else ""
