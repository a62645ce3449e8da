"""Every fault that can be planted in a candidate, each once, and a fair sample of them."""

from __future__ import annotations

import difflib
import hashlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fsr.mutation import arithmetic, conditions, constants, ordering, places, special_cases, storing
from fsr.mutation.ground import Edit, Function, Operator, functions
from fsr.mutation.launches import plans
from fsr.records import Candidate
from fsr.source.tokens import line_of, tokenize

OPERATORS: tuple[Operator, ...] = (
    conditions.relations, conditions.guards, conditions.logic, conditions.branches,
    arithmetic.operators, arithmetic.signs, arithmetic.calls, arithmetic.steps,
    constants.numbers, constants.initial_values, constants.extents,
    places.indices, places.layouts, places.axes, places.strides,
    ordering.barriers, ordering.fences, ordering.atomics, ordering.shuffles,
    storing.stores, storing.statements, storing.special_values, storing.precisions,
    special_cases.sizes, special_cases.places, special_cases.values, special_cases.widths, special_cases.repeated,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A candidate with one planted fault. ``operator``: which kind. ``line``, ``column``: where in the original's text,
    1-based; both 0 for a fault of the plan. ``before``, ``after``: what stood there and what stands there now."""

    operator: str
    line: int
    column: int
    before: str
    after: str
    candidate: Candidate

    @property
    def name(self) -> str:
        """Stable: the operator, and where: ``bound-short@12:17``, ``grid-short@plan``."""
        return f"{self.operator}@{self.line}:{self.column}" if self.line else f"{self.operator}@plan"

    def diff(self, original: Candidate) -> str:
        """What it changes, as lines to take out and to put in; of a plan, both launches."""
        if self.candidate.source == original.source:
            return f"-{self.before}\n+{self.after}"
        old, new = original.source.splitlines(), self.candidate.source.splitlines()
        lines = list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]
        return "\n".join(line for line in lines if not line.startswith("+#include"))


def mutants(candidate: Candidate) -> list[Mutant]:
    """Every mutant in the order of the text, the plan's last. Texts that differ in blanks alone are one."""
    found: dict[tuple[str, str], Mutant] = {}
    texts = _Texts(candidate.source)
    for function in functions(candidate):
        edits = [edit for operator in OPERATORS for edit in operator(function)]
        for edit in sorted(edits, key=lambda e: (e.start, e.end, e.operator)):
            found.setdefault((edit.header, texts.edited(edit)), _mutant(candidate, edit))
    found.pop(("", texts.tokens), None)
    return [*found.values(), *_of_plan(candidate)]


def sampled(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """At most ``count`` of them: each operator's turn after turn, within an operator at random, so that rare kinds are
    there as well. In the order of the text."""
    rng = np.random.default_rng([seed % 2**63, 0xADE])
    by_operator: defaultdict[str, list[Mutant]] = defaultdict(list)
    for index in rng.permutation(len(found)):
        by_operator[found[int(index)].operator].append(found[int(index)])
    turns = [(turn, number, mutant) for number, group in enumerate(by_operator.values())
             for turn, mutant in enumerate(group)]  # fmt: skip
    chosen = {id(mutant) for _, _, mutant in sorted(turns, key=lambda t: t[:2])[:count]}
    return [mutant for mutant in found if id(mutant) in chosen]


def _mutant(candidate: Candidate, edit: Edit) -> Mutant:
    source = candidate.source
    text = edit.header + source[: edit.start] + edit.text + source[edit.end :]
    column = edit.start - source.rfind("\n", 0, edit.start)
    line = line_of(source, edit.start)
    changed = replace(candidate, source=text)
    return Mutant(edit.operator, line, column, source[edit.start : edit.end], edit.text, changed)


def _of_plan(candidate: Candidate) -> Iterator[Mutant]:
    known = {candidate.plan}
    parameters = {f.form.name: [p.type for p in f.form.params] for f in _kernels(candidate)}
    for operator, number, plan in plans(candidate.plan, parameters):
        if plan in known:
            continue
        known.add(plan)
        before = str(candidate.plan.launches[number])
        after = str(plan.launches[number]) if number < len(plan.launches) else "no launch"
        yield Mutant(operator, 0, 0, before, after, replace(candidate, plan=plan))


def _kernels(candidate: Candidate) -> list[Function]:
    return [f for f in functions(candidate) if f.is_kernel]


class _Texts:
    """What tells a source's tokens from others', and from what an edit makes of them: tokens far from it are not found
    anew, since a long candidate has thousands of edits."""

    def __init__(self, source: str) -> None:
        self._source, self._found = source, tokenize(source)
        self.tokens = _told([token.text for token in self._found])
        self._starts = [token.start for token in self._found]
        self._ends = [token.end for token in self._found]

    def edited(self, edit: Edit) -> str:
        """The tokens after an edit, its header apart."""
        first, last = bisect_left(self._ends, edit.start), bisect_right(self._starts, edit.end)  # those that it touches
        low = min([edit.start, *self._starts[first:last]])
        high = max([edit.end, *self._ends[first:last]])
        piece = self._source[low : edit.start] + edit.text + self._source[edit.end : high]
        if any(mark in piece for mark in ("//", "/*", "#")):  # what follows may be another thing than it was
            whole = self._source[: edit.start] + edit.text + self._source[edit.end :]
            return _told([token.text for token in tokenize(whole)])
        texts = [token.text for token in (*self._found[:first], *tokenize(piece), *self._found[last:])]
        return _told(texts)


def _told(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
