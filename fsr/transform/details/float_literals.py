"""Arithmetic in double that a float kernel falls into: by a literal, ``2.0 * x`` becomes ``2.0f * x``, by a macro that
is one, by ``pow`` of whole numbers, by variables and functions that are declared so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Candidate, Role
from fsr.source.form import KernelForm
from fsr.source.macros import macros
from fsr.source.names import reached
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import skeleton
from fsr.source.walk import identifiers
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

_LITERAL = re.compile(r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])")
_DOUBLE = re.compile(r"\bdouble\b")
# In float they overflow at arguments at which a result in double, divided or scaled later, does not.
_STEEP = re.compile(r"\b(exp|exp2|exp10|expm1|pow|sinh|cosh|tgamma)\s*\(")
_POWER = re.compile(r"(?<![\w.>:])(?:std\s*::\s*)?pow(?=\s*\()")  # of a float and a whole number it is a double
_NUMBERS = re.compile(
    r"(?<!float\()\bM_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)\b"
)  # of <math.h>
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


def _bounded(target: Target) -> bool:
    """Whether the contract says how large all is that a kernel is given, so that tests reach the largest values."""
    inputs = (a for a in target.contract.args if a.role not in (Role.OUT, Role.NULL) and a.value is None)
    free = (a for a in inputs if a.constraints.low is None or a.constraints.high is None)
    return not any(is_float(numpy_dtype(a.dtype)) for a in free)


def _changed(target: Target, mode: str) -> str:
    """The source with the kernel's body in single precision, and in mode ``all`` what functions of its own do; ''
    where that is no change."""
    data = target.source.encode()
    forms = [target.kernel, *(_functions(target) if mode == "all" else ())]
    for start, end in sorted((f.span for f in forms if f.span is not None), reverse=True):
        text = data[start:end].decode()
        code = skeleton(text)
        if _STEEP.search(code) and not _bounded(target):
            return ""
        places = _places(code, target.source, mode)
        for first, last, new in sorted(places, reverse=True):
            text = text[:first] + new + text[last:]
        data = data[:start] + text.encode() + data[end:]
    new = data.decode()
    return "" if new == target.source else new


def _places(code: str, source: str, mode: str) -> Iterator[tuple[int, int, str]]:
    """What stands where in a function's text instead."""
    yield from ((m.end(), m.end(), "f") for m in _LITERAL.finditer(code) if abs(float(m[0])) < _LARGEST)
    yield from ((m.start(), m.end(), "powf") for m in _POWER.finditer(code))
    own = "|".join(re.escape(m.name) for m in macros(source) if m.params is None and _LITERAL.fullmatch(m.body))
    named = [*_NUMBERS.finditer(code), *(re.finditer(rf"(?<!float\()\b(?:{own})\b", code) if own else ())]
    yield from {(m.start(), m.end(), f"float({m[0]})") for m in named}
    if mode == "all":
        yield from ((m.start(), m.end(), "float") for m in _DOUBLE.finditer(code))


def _functions(target: Target) -> Iterator[KernelForm]:
    """The functions of the file that the kernel calls, however far down, and no other kernel of the plan."""
    functions = parse_device_functions(target.source)
    below = {name: identifiers(f.body) & functions.keys() for name, f in functions.items()}
    alone = len(target.candidate.plan.launches) == 1
    called = reached(identifiers(target.kernel.body) & functions.keys(), below) if alone else ()
    return (functions[name] for name in called)
