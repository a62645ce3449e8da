"""fold-storage: a dynamic program's matrix in scratch memory, of which a row reads few before it, keeps only these.

A row that no one reads any more gives its place to a later one: row ``r`` lies where row ``r % kept`` lay. What was a
matrix in global memory then stays in the caches (Halide's "storage folding"; array contraction). Only memory of the
plan's own that one launch uses: nobody can look for a row that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.effects import element_type
from fsr.analysis.macros import expanded, hides_names
from fsr.analysis.polynomial import Poly
from fsr.analysis.versions import told_apart
from fsr.records import Candidate, Plan, Scratch
from fsr.source.form import Binary, Cast, Declare, Expr, Index, KernelForm, Name, number
from fsr.source.mapping import rewrite, with_blocks
from fsr.source.types import resolve_dtype
from fsr.source.walk import Block, contains_barrier, contains_opaque, contains_warp_wide, fresh, walk_exprs, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.poly_expressions import expression_of
from fsr.transform.protocol import Move, Subject
from fsr.transform.scratch.buffers import Unfit
from fsr.transform.scratch.kept_rows import Reading, Rows, Use, at_least
from fsr.transform.scratch.row_nests import Nest, nests
from fsr.transform.scratch.row_starts import with_starts_in_turns
from fsr.transform.sizes import INT_LIMIT, always, largest
from fsr.transform.target import Target, target_of, targets

_GAIN = 2.0


@dataclass(frozen=True, slots=True)
class FoldStorage:
    """All scratch buffers of a launch at once that can be folded along one loop."""

    name: str = "fold-storage"
    aims_at: frozenset[str] = frozenset(["bandwidth", "latency", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Launches whose turns read few rows back of scratch memory."""
        for target in targets(subject):
            if _once(subject, target) is not None:
                yield Move(self.name, target.region, (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with only the rows that are needed."""
        target = target_of(subject, move)
        found = _once(subject, target)
        assert found is not None
        new = rewritten(target, move, found.kernel)
        return replace(new, plan=_with_counts(new.plan, found.counts))


@dataclass(frozen=True, slots=True)
class Folded:
    """The kernel with fewer rows, and how large its buffers need to be, by their names."""

    kernel: KernelForm
    counts: Mapping[str, str]


def _once(subject: Subject, target: Target) -> Folded | None:
    return subject.once(("fold-storage", target.region), lambda: folded(target))


def _with_counts(plan: Plan, counts: Mapping[str, str]) -> Plan:
    return replace(plan, scratch=tuple(replace(s, count=counts.get(s.name, s.count)) for s in plan.scratch))


def folded(target: Target) -> Folded | None:
    """The launch with few rows of each buffer that allows it; None where none does."""
    own = _own_buffers(target)
    if not own:
        return None
    target = replace(target, kernel=expanded(target.kernel, target.source))
    body = target.kernel.body
    if (
        hides_names(target.kernel, target.source)
        or contains_opaque(body)
        or contains_barrier(body)
        or contains_warp_wide(body)
    ):
        return None
    if not all(target.functions.stays_in_thread(e, target.type_names) for e in walk_exprs(body)):
        return None
    plain = replace(target, kernel=replace(target.kernel, body=told_apart(body, target.names)))
    for nest in nests(plain.kernel.body, frozenset(own)):
        found = _along(plain, nest, dict(own))
        if found is not None:
            return found
    return None


def _own_buffers(target: Target) -> dict[str, Scratch]:
    """By parameter, the scratch buffers that no other launch uses, nor this one twice."""
    launches = target.candidate.plan.launches
    used = [a for launch in launches for a in launch.args if isinstance(a, str)]
    found = {}
    for scratch in target.candidate.plan.scratch:
        params = [p for p in target.kernel.params if target.passed.get(p.name) == scratch.name]
        if used.count(scratch.name) != 1 or scratch.zeroed or len(params) != 1:
            continue
        type_ = params[0].type
        plain = type_.count("*") == 1 and "volatile" not in type_
        if plain and resolve_dtype(element_type(type_), target.aliases) == (scratch.dtype, 1):
            found[params[0].name] = scratch
    return found


def _along(target: Target, nest: Nest, own: dict[str, Scratch]) -> Folded | None:
    """The launch with rows along one loop folded: of all buffers, without those of which that cannot be told."""
    while own:
        try:
            readings = {name: r for name in own if (r := _reading(target, nest, name)) is not None}
            new, inner = _with_nest(target, nest, with_starts_in_turns(target, nest, readings), own)
            rows = {name: kept for name in readings if (kept := _rows(new, inner, name)) is not None}
        except Unfit:
            return None
        if rows and rows.keys() == own.keys():
            return _Folding(new, inner, rows).made(own)
        own = {name: s for name, s in own.items() if name in rows}
    return None


def _reading(target: Target, nest: Nest, name: str) -> Reading | None:
    try:
        return Reading(target, nest, name)
    except Unfit:
        return None


def _rows(target: Target, nest: Nest, name: str) -> Rows | None:
    try:
        return Reading(target, nest, name).rows()
    except Unfit:
        return None


def _with_nest(target: Target, old: Nest, new: Nest, params: Iterable[str]) -> tuple[Target, Nest]:
    """The target with other statements in the place of a nest's, each variable with a name of its own again."""
    body = told_apart(_replaced(target.kernel.body, old, new), target.names)
    found = next((n for n in nests(body, frozenset(params)) if n.loop.var == new.loop.var), None)
    if found is None:
        raise Unfit
    return replace(target, kernel=replace(target.kernel, body=body)), found


def _replaced(body: Block, old: Nest, new: Nest) -> Block:
    if any(s is old.loop for s in body):
        return (*new.before, new.loop, *new.after)
    return tuple(with_blocks(s, lambda block: _replaced(block, old, new)) for s in body)


class _Folding:
    """The new kernel."""

    def __init__(self, target: Target, nest: Nest, rows: Mapping[str, Rows]) -> None:
        self.target, self.nest, self.rows = target, nest, rows
        self._taken = set(target.names) | {s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)}
        self._shifts: dict[Expr, str] = {}

    def made(self, own: Mapping[str, Scratch]) -> Folded:
        inside, after = dict[Expr, Expr](), dict[Expr, Expr]()
        for name, rows in self.rows.items():
            for use in rows.inside:
                shift = self._named(self._shift(name, rows, self._turn(rows, use)))
                inside[use.access.expr] = _moved(use, Name(shift))
            for use in rows.after:
                after[use.access.expr] = _moved(use, self._shift(name, rows, self._last(rows, use)))
        loop = self.nest.loop
        heads = [Declare(f"const {self._type}", name, value) for value, name in self._shifts.items()]
        new_loop = replace(loop, body=(*heads, *rewrite(loop.body, inside.get)))
        body = _replaced(
            self.target.kernel.body, self.nest,
            Nest(self.nest.before, new_loop, rewrite(self.nest.after, after.get)),
        )  # fmt: skip
        counts = {own[n].name: self._count(own[n], r) for n, r in self.rows.items()}
        return Folded(replace(self.target.kernel, body=body), {n: c for n, c in counts.items() if c})

    @property
    def _type(self) -> str:
        sizes = [largest(self.target.contract, s.count) for s in self.target.candidate.plan.scratch]
        return "int" if all(n is not None and n <= INT_LIMIT for n in sizes) else "long long"

    def _named(self, shift: Expr) -> str:
        if shift not in self._shifts:
            name = fresh("rows_back", self._taken)
            self._taken.add(name)
            self._shifts[shift] = name
        return self._shifts[shift]

    def _turn(self, rows: Rows, use: Use) -> Expr:
        return _plus(Name(self.nest.loop.var), rows.shift - use.back)

    def _last(self, rows: Rows, use: Use) -> Expr:
        loop = self.nest.loop
        return _plus(loop.bound, rows.shift - (loop.relation == "<") - use.back)

    def _shift(self, name: str, rows: Rows, row: Expr) -> Expr:
        """From where a row lay to where it lies."""
        place: Expr = number(rows.first) if rows.once else Binary("%", row, number(rows.kept))
        count: Expr = row if rows.once and not rows.first else Binary("-", row, place)
        if self._type != "int":
            count = Cast(self._type, count)
        return Binary("*", count, expression_of(rows.stride))

    def _count(self, scratch: Scratch, rows: Rows) -> str | None:
        """How large the buffer is, where rows are the outermost of it: of every column there was one in the last."""
        stride, last = self.target.poly_text(rows.stride), self.target.poly_text(rows.last)
        if stride is None or last is None or not always(
            self.target.contract, f"({scratch.count}) == (({last}) + 1) * ({stride})"
        ):  # fmt: skip
            return None
        if not all(self._stays(rows, use) for use in rows.before):
            return None
        return f"min({scratch.count}, {rows.kept} * ({stride}))"

    def _stays(self, rows: Rows, use: Use) -> bool:
        """Whether what is used in front of the loop lies among the first rows: no further along a row than something
        that each turn writes, of this buffer or of one that is as large."""
        for other in self.rows.values():
            alike = other.stride == rows.stride and other.last == rows.last
            for u in other.inside if alike else ():
                over = u.columns.high + _times(rows.stride, rows.kept - 1) - use.columns.high
                steady = u.columns.loop is None or other is rows
                if u.access.writes and not u.access.tests and steady and at_least(self.target, over, 0):
                    return True
        return False


def _times(value: Poly, count: int) -> Poly:
    return value * Poly((((), count),) if count else ())


def _plus(e: Expr, count: int) -> Expr:
    return e if not count else Binary("+" if count > 0 else "-", e, number(abs(count)))


def _moved(use: Use, by: Expr) -> Expr:
    return Index(Name(use.access.pointer), Binary("-", use.access.offset, by))
