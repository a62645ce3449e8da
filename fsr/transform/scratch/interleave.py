"""interleave-scratch: a thread's slice of scratch memory laid out so that what neighbours have of it lies side by side.

Threads that walk over slices of their own in step touch a line each at every step. With element k of all slices side by
side, a warp touches one (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"). Only memory of the plan's
own can be laid out anew, in all launches alike; which element lies where is a permutation, whoever uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accesses import accesses, element, pointed
from fsr.analysis.effects import element_type
from fsr.analysis.macros import expanded
from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch
from fsr.source.emit import emit_kernel
from fsr.source.entry import function_name
from fsr.source.form import Expr, KernelForm, Literal, Name, Param
from fsr.source.rewrite import insert_helpers
from fsr.source.types import resolve_dtype
from fsr.source.walk import fresh, walk_exprs
from fsr.transform.protocol import Move, Subject
from fsr.transform.scratch.buffers import Buffer, Unfit
from fsr.transform.scratch.ends import leaves_slices
from fsr.transform.scratch.functions import check_macros, edits, versions
from fsr.transform.scratch.inlined import with_functions_written_out
from fsr.transform.scratch.moved import with_slices_as_variables
from fsr.transform.scratch.pointers import Pointers
from fsr.transform.scratch.slices import Slices, Slicing, slices_of
from fsr.transform.scratch.strided import STRIDED, STRIDED_CLASS
from fsr.transform.sizes import INT_LIMIT, largest, largest_timed
from fsr.transform.target import Target

LEAST_LENGTH, LEAST_SLICES = 4, 64  # as timed
_LEAST_GAIN, _MOST_GAIN = 1.1, 4.0

Rules = Mapping[str, Slices]
"""By the name of a scratch buffer."""


@dataclass(frozen=True, slots=True)
class InterleaveScratch:
    """All scratch buffers at once in which threads have slices."""

    name: str = "interleave-scratch"
    aims_at: frozenset[str] = frozenset(["uncoalesced", "bandwidth", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the plan, where a buffer of it can be laid out anew."""
        found = None if subject.keep_launch else subject.once("interleave-scratch", lambda: _laid_out(subject))
        if found is not None:
            yield Move(self.name, "plan", (), found.gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with its scratch memory laid out anew."""
        found = subject.once("interleave-scratch", lambda: _laid_out(subject))
        assert found is not None
        old = subject.candidate
        return replace(old, source=found.source, plan=found.plan, actions=(*old.actions, move.name))


@dataclass(frozen=True, slots=True)
class _LaidOut:
    source: str
    plan: Plan
    gain: float


def _laid_out(subject: Subject) -> _LaidOut | None:
    """The candidate with all the buffers in slices that it can have, together or else the first of them."""
    rules: dict[str, Slices] = {}
    first: _LaidOut | None = None
    for scratch in subject.candidate.plan.scratch:
        for slices in _possible(subject, scratch):
            made = _made(subject, {**rules, scratch.name: slices})
            if made is not None:
                rules[scratch.name], first = slices, made
                break
    return first


def _possible(subject: Subject, scratch: Scratch) -> list[Slices]:
    """The slices that a buffer may be cut into, the longest first."""
    lengths: dict[str, None] = {}
    lanes = 1
    for target in _targets(subject):
        arrays = frozenset(n for n, passed in target.passed.items() if passed == scratch.name)
        slicing = Slicing(target) if arrays else None
        lanes = max((_lanes(target, name) for name in arrays), default=lanes)
        for e in walk_exprs(target.kernel.body) if slicing is not None else ():
            place = pointed(e, arrays)
            index = place[1] if place is not None else None
            if place is None and (at := element(e, arrays)) is not None and len(at[1]) == 1:
                index = at[1][0]
            if index is not None and slicing is not None:
                lengths |= dict.fromkeys(slicing.lengths(index))
    contract = subject.contract
    timed = {text: largest_timed(contract, text) or 0 for text in lengths}
    found: list[Slices] = []
    for text in sorted(lengths, key=lambda t: -timed[t]):
        slices = slices_of(contract, scratch.count, text if lanes == 1 else f"({text}) * {lanes}")
        enough = timed[text] * lanes >= LEAST_LENGTH and slices is not None
        if slices is not None and enough and (largest_timed(contract, slices.count) or 0) >= LEAST_SLICES:
            found.append(replace(slices, length=text, lanes=lanes))
    return found


def _lanes(target: Target, parameter: str) -> int:
    """How many elements of a buffer one of a parameter is: 4 of a ``float4 *``."""
    return resolve_dtype(element_type(target.kernel.param(parameter).type), target.aliases)[1]


def _targets(subject: Subject) -> list[Target]:
    """Every launch of the plan. Macros, and functions that are handed a buffer whole, are written out, and slices that
    a parameter is moved to are variables."""

    def think() -> list[Target]:
        found = []
        for position, launch in enumerate(subject.candidate.plan.launches):
            kernel = subject.kernels.get(function_name(launch.entry))
            if kernel is not None and kernel.span is not None and len(launch.args) == len(kernel.params):
                plain = Target(kernel, position, subject.candidate, subject.contract, "plan")
                names = {s.name for s in subject.candidate.plan.scratch}
                buffers = frozenset(n for n, passed in plain.passed.items() if passed in names)
                form = expanded(kernel, plain.source)
                form = with_functions_written_out(form, plain.source, buffers) if buffers else form
                found.append(replace(plain, kernel=with_slices_as_variables(form, plain)))
        return found

    return subject.once("targets of interleave-scratch", think)


# ---------------------------------------------------------------- the rewrite


def _made(subject: Subject, rules: Rules) -> _LaidOut | None:
    """The candidate with buffers laid out by rules; None where a use of one does not allow it."""
    try:
        return _Rewriting(subject, rules).made()
    except Unfit:
        return None


def _writable(type_: str) -> str:
    return re.sub(r"\bconst\b ?", "", type_)


class _Rewriting:
    """All kernels that use some scratch buffers, with these laid out anew."""

    def __init__(self, subject: Subject, rules: Rules) -> None:
        self.subject, self.rules = subject, rules
        self.targets = [t for t in _targets(subject) if set(t.passed.values()) & set(rules)]
        sizes = [largest(subject.contract, s.count) for s in subject.candidate.plan.scratch if s.name in rules]
        self.wide = any(size is None or size > INT_LIMIT for size in sizes)
        self.pointers: dict[str, Pointers] = {}
        self.kernels: dict[str, KernelForm] = {}

    def made(self) -> _LaidOut:
        plan = self.subject.candidate.plan
        users = [n for n, x in enumerate(plan.launches) if set(self.rules) & {a for a in x.args if isinstance(a, str)}]
        if not users or users != [t.position for t in self.targets]:
            raise Unfit
        launches = list(plan.launches)
        for target in self.targets:
            launches[target.position] = self._launch(target)
        return _LaidOut(self._source(), replace(plan, launches=tuple(launches)), self._gain())

    def _launch(self, target: Target) -> Launch:
        """The launch with the numbers of slices; the kernel's new form is kept. Raises Unfit where another launch of
        the kernel needs another form."""
        kernel, counts = target.kernel, dict[str, Expr]()
        names = set(target.names) | {p.name for p in kernel.params}
        added: list[tuple[Param, ScalarArgument]] = []
        buffers: dict[str, Buffer] = {}
        for param in kernel.params:
            slices = self.rules.get(target.passed.get(param.name, ""))
            if slices is None:
                continue
            if slices.count not in counts:
                name = fresh("slices", names)
                names.add(name)
                counts[slices.count] = Literal(slices.count) if slices.count.isdigit() else Name(name)
                if not slices.count.isdigit():
                    kind, dtype = ("const long long", "int64") if self.wide else ("const int", "int32")
                    added.append((Param(kind, name), ScalarArgument(dtype, slices.count)))
            buffers[param.name] = self._buffer(target, param, slices, counts[slices.count])
        pointers = Pointers(Slicing(target), buffers, self._raw(target, buffers), wide=self.wide)
        body = pointers.rewritten(kernel.body)
        check_macros(target.source, kernel, pointers)
        if leaves_slices(target, pointers):
            raise Unfit
        plain = [replace(p, type=_writable(p.type) if p.name in buffers else p.type, default="") for p in kernel.params]
        form = replace(kernel, body=body, params=(*plain, *(p for p, _ in added)))
        if self.kernels.setdefault(kernel.name, form) != form:
            raise Unfit
        self.pointers[kernel.name] = pointers
        return replace(target.launch, args=(*target.launch.args, *(a for _, a in added)))

    def _buffer(self, target: Target, param: Param, slices: Slices, count: Expr) -> Buffer:
        kind = element_type(param.type)
        dtype = next(s.dtype for s in self.subject.candidate.plan.scratch if s.name == target.passed[param.name])
        if param.type.count("*") != 1 or "volatile" in param.type:
            raise Unfit
        told = resolve_dtype(kind, target.aliases) == (dtype, slices.lanes)
        if not told and (kind not in target.type_names - set(target.aliases) or slices.lanes != 1):
            raise Unfit
        return Buffer(param.name, kind, slices.length, count)

    def _raw(self, target: Target, buffers: Mapping[str, Buffer]) -> dict[str, str]:
        """Other pointers that a variable may be set to which also leads into slices."""
        others = [p for p in target.kernel.params if p.name not in buffers and p.type.count("*") == 1]
        return {p.name: element_type(p.type) for p in others if not {"const", "volatile"} & set(p.type.split())}

    def _source(self) -> str:
        """The text with all kernels and functions that change, and the class of the pointers."""
        source = self.subject.candidate.source
        spans = [k.span for k in self.kernels.values() if k.span is not None]
        calls = {c for p in self.pointers.values() for c in p.calls}
        new = versions(source, calls, min(start for start, _ in spans), wide=self.wide)
        compared = any(p.compared for p in (*self.pointers.values(), *(v.pointers for v in new.values())))
        if compared and any(len(p.numbers) > 1 for p in self.pointers.values()):
            raise Unfit  # those of two slices are not in the order that they were in
        changes = edits(source, new, self.pointers)
        changes += [(k.span, emit_kernel(k).rstrip("\n")) for k in self.kernels.values() if k.span is not None]
        data = source.encode()
        for (start, end), text in sorted(changes, reverse=True):
            data = data[:start] + text.encode() + data[end:]
        text = data.decode()
        return insert_helpers(text, STRIDED_CLASS) if f"{STRIDED}<" in text else text

    def _gain(self) -> float:
        """By how many of the accesses in loops are of what is laid out anew, and how little of a sector each takes."""
        mine = others = 0
        for target in self.targets:
            known = self.pointers[target.kernel.name]
            names = known.strided.keys() | known.buffers.keys()
            for a in accesses(target.kernel):
                if a.loops and a.array is not None:
                    mine, others = (mine + 1, others) if a.array in names else (mine, others + 1)
            mine += 2 * sum(bool(places) for _, places in known.calls)
        share = mine / (mine + others) / max(s.lanes for s in self.rules.values()) if mine else 0.0
        return max(_LEAST_GAIN, 1.0 + (_MOST_GAIN - 1.0) * share)
