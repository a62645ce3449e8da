"""Which loops of a thread can be dealt out to lanes: those whose turns hand on nothing but what lanes can put together,
and write apart from one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from fsr.analysis.accesses import Access
from fsr.analysis.dependence import parallel
from fsr.analysis.effects import Pointers, Unclear, accesses, pointers
from fsr.analysis.operators import OPERATORS
from fsr.analysis.types import FLOATING, integer_bytes, resolved, type_of
from fsr.source.entry import template_arguments
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    Jump,
    Literal,
    Member,
    Name,
    Stmt,
    While,
)
from fsr.source.mapping import with_blocks
from fsr.source.walk import (
    BUILTINS,
    Block,
    blocks_of,
    integer,
    loops,
    names_assigned,
    names_changed,
    names_in,
    names_mentioned,
    walk_expr,
    walk_stmts,
)
from fsr.transform.details.running_out import only_looks
from fsr.transform.lanes.calls import Calls, calls_in
from fsr.transform.lanes.compensated import Compensated
from fsr.transform.lanes.folds import Folds, folds_of
from fsr.transform.lanes.moderate import is_moderate
from fsr.transform.lanes.own_elements import OwnArray
from fsr.transform.lanes.running import Run, Told, run_of, starting
from fsr.transform.lanes.stops import stopped, straight
from fsr.transform.launch.spread_loop import nonzero
from fsr.transform.rows.row_kernel import outlives
from fsr.transform.sizes import INT_LIMIT
from fsr.transform.target import Target

_MOST_LANES = 32
LEAST_TURNS = 4


@dataclass(frozen=True)
class Shared:
    """A loop that can be dealt out, what its turns hand on, and what they touch. ``turns``: at the sizes that are
    timed; None where data tells. ``run``: a sum that they go on with, of that type."""

    loop: For
    folds: Folds
    accesses: tuple[Access, ...]
    turns: int | None
    run: tuple[Run, str] | None = None


class Loops:
    """The loops of one kernel. ``body``: the part of it that is looked at (None: all). Raises Unclear where it does
    something with memory that cannot be followed."""

    def __init__(self, target: Target, body: Block | None = None) -> None:
        self.target, self.kernel = target, target.kernel
        self.body = target.kernel.body if body is None else body
        known, types = target.functions, target.type_names  # ``T(0)`` computes, too
        self.functions = replace(known, pure=known.pure | types, local=known.local | types)
        self.pointers: Pointers = pointers(target.kernel, target.passed, target.contract.aliasing, self.functions)
        own_functions = calls_in(target.source, target.functions)
        self.told = Calls(own_functions, frozenset(self.pointers.roots)).told
        self.own: Mapping[str, OwnArray] = {}  # arrays of which lanes may keep the elements of their turns
        self.touched(self.body)

    def touched(self, body: Iterable[Stmt]) -> tuple[Access, ...]:
        """What statements do to memory. Raises Unclear."""
        return tuple(accesses(self.told(tuple(body)), self.pointers))

    @cached_property
    def type_names(self) -> dict[str, str]:
        """What the names that stand for types stand for."""
        named = [name for _, name in self.kernel.template_parameters]
        given = dict(zip(named, template_arguments(self.target.launch.entry), strict=False))
        return {**self.target.aliases, **{n: t for n, t in given.items() if n in self.target.type_names}}

    def type_of(self, name: str) -> str | None:
        """The type of a variable, in its usual spelling; None where it has several."""
        text = self.target.known.types.get(name, "")
        if text.removeprefix("const ") == "auto":
            inits = [s.init for s in walk_stmts(self.kernel.body) if isinstance(s, Declare) and s.name == name]
            text = (inits and inits[0] and type_of(inits[0], self.target.known.types, self.type_names)) or ""
        return None if not text or {"*", "&"} & set(text) else resolved(text, self.type_names)

    # ------------------------------------------------------------ choices

    def outermost(self, body: Block, seen: frozenset[str] = frozenset()) -> Iterator[Shared]:
        """The loops that can be shared and stand in no other that can."""
        for s, inner, visible in self._parts(body, seen):
            found = self.shared(s, visible) if isinstance(s, For) else None
            if found is not None:
                yield found
            else:
                for block in inner:
                    yield from self.outermost(block, visible)

    def innermost(self, body: Block, seen: frozenset[str] = frozenset()) -> Iterator[Shared]:
        """The loops that can be shared and hold no other that can."""
        for s, inner, visible in self._parts(body, seen):
            found = [x for block in inner for x in self.innermost(block, visible)]
            own = self.shared(s, visible) if isinstance(s, For) and not found else None
            yield from found if own is None else [own]

    def _parts(self, body: Block, seen: frozenset[str]) -> Iterator[tuple[Stmt, tuple[Block, ...], frozenset[str]]]:
        """Each statement, its blocks, and the names that are declared around those."""
        for s in body:
            if isinstance(s, Declare):
                seen |= {s.name}
            yield s, blocks_of(s), seen | {s.var} if isinstance(s, For) else seen

    # ------------------------------------------------------------ one loop

    def shared(self, loop: For, visible: frozenset[str]) -> Shared | None:
        """The loop as one to be shared; None where that cannot be shown, or it has few turns."""
        return self._apart(loop, visible) or self._running(loop, visible)

    def _running(self, loop: For, visible: frozenset[str]) -> Shared | None:
        """The same of one whose turns go on with a sum, each of which would be free without, until a count is full."""
        taken = self.target.names | names_mentioned(self.kernel.body)
        plain, start = straight(loop), partial(_number_at, loop, self.kernel.body)
        told = Told(self._quiet, self.type_of, partial(self._rereads, loop))
        stops = stopped(plain, self._quiet, start)
        for form, limit in ((plain, None), *((form, (name, limit)) for form, name, limit in stops)):
            run = run_of(form, taken, told, limit=limit)
            found = None if run is None else self._going_on(loop, starting(run, start(run.name)), visible)
            if found is not None:
                return found
        return None

    def _going_on(self, loop: For, run: Run, visible: frozenset[str]) -> Shared | None:
        type_ = self.type_of(run.name)
        if type_ is None or type_ == "bool" or not self._foldable(run.name, "sum"):
            return None
        if run.limit is not None and type_ not in ("int", "unsigned int"):
            return None
        if run.factor is not None and not self._multiplies(run, run.factor, type_):
            return None
        try:
            accesses, first = self.touched(run.body), self.touched(run.first)
        except Unclear:
            return None
        found = self._apart(run.loop(loop, type_, accesses), visible)
        if found is None or run.name in found.folds.names or not _ahead(first, (*found.accesses, *accesses)):
            return None
        return replace(found, loop=loop, run=(run, type_), accesses=(*found.accesses, *first))

    def _rereads(self, loop: For, body: Block) -> bool:
        """Whether statements may read what a loop stores."""
        try:
            written = {a.root for a in self.touched(loop.body) if a.kind != "read"}
            read = {a.root for a in self.touched(body)}
        except Unclear:
            return True
        arrays = {s.name for s in walk_stmts(self.kernel.body) if isinstance(s, Declare) and s.dims}
        own = arrays & names_changed(self.told(loop.body)) & names_mentioned(body)
        return bool(written & read or own)

    def _multiplies(self, run: Run, factor: Expr, type_: str) -> bool:
        """Whether factors of several turns may be put together: that of many may be larger than a signed number holds,
        and a whole number's parts must be such, too."""
        if type_ in ("float", "double"):
            return type_ == "float" or is_moderate(factor, run.made, self.target, self._is_whole_number)
        parts = [type_of(e, self.target.known.types, self.type_names) for e in (run.value, factor)]
        return "unsigned" in type_ and all(t is not None and integer_bytes(t) is not None for t in parts)

    def _is_whole_number(self, name: str) -> bool:
        """Whether a variable or an array's elements are whole numbers of a word."""
        element = self.pointers.elements.get(name) or self.type_of(name) or ""
        return integer_bytes(resolved(element, self.type_names)) in (1, 2, 4)

    def _quiet(self, e: Expr | None) -> bool:
        return only_looks(self.target, e)

    def _apart(self, loop: For, visible: frozenset[str]) -> Shared | None:
        turns = self.turns(loop)
        if (turns is not None and turns < LEAST_TURNS) or not self._counts(loop):
            return None
        if loop.type is None and (outlives(loop.var, self.kernel.body) or self._goes_on(loop.var)):
            return None
        folds = folds_of(loop)
        private = _declared_in(loop)
        if private & (visible - {loop.var}) or not self._keeps_apart(loop, private):
            return None
        rest = replace(folds.rest, body=self.told(_without_breaks(folds.rest.body)))
        try:
            found, ends = (
                self.touched(loop.body),
                self.touched(ExprStmt(e) for e in (loop.start, loop.bound, loop.step)),
            )
        except Unclear:
            return None
        if {a.root for a in found if a.kind != "read"} & {a.root for a in ends} or not self._one_way(found):
            return None
        free = parallel(
            self.kernel, rest, aliasing=self.target.aliasing, known=self.target.known, functions=self.functions,
            nonzero=partial(nonzero, self.target),
        )  # fmt: skip
        if (
            free is None
            or free.folds.keys() != folds.plain.keys()
            or not all(self._foldable(n, op) for n, op in folds.plain.items())
        ):
            return None
        others = [(n, "greatest") for b in folds.bests for n in b.names] + [(n, "max") for n in folds.flags]
        if not all(self._foldable(*each) for each in others) or not self._tells_last(folds, loop):
            return None
        if not all(self._compensates(s) for s in folds.sums):
            return None
        return Shared(loop, folds, (*found, *ends), turns)

    def turns(self, loop: For) -> int | None:
        """How many turns a loop has at most at the sizes that are timed; None where that is not known."""
        step = self.target.poly(loop.step).value
        ends = (loop.bound, loop.start) if (step or 0) > 0 else (loop.start, loop.bound)
        span = self.target.poly(ends[0]) - self.target.poly(ends[1])
        length = span.value
        if length is None:
            length = self.target.timed(Binary("-", *ends))
        if length is None or not step:
            return None
        return max(0, -(-(length + ("=" in loop.relation)) // abs(step)))

    def _counts(self, loop: For) -> bool:
        """Whether a lane may begin some turns later and go on by as many steps at a time: what the loop counts to stays
        as it is, and no counter wraps."""
        if loop.relation not in ("<", "<=", ">", ">="):
            return False
        type_ = self.target.aliases.get(loop.type or "", loop.type) or self.target.known.types.get(loop.var, "")
        bytes_ = integer_bytes(resolved(type_, self.type_names))
        changing = names_changed(self.told(loop.body)) | _declared_in(loop)
        heads = names_in(loop.start) | names_in(loop.bound) | names_in(loop.step)
        if bytes_ is None or bytes_ < 4 or (names_in(loop.bound) | names_in(loop.step)) & changing or loop.var in heads:
            return False
        step = self.target.poly(loop.step).value
        down = ">" in loop.relation
        unsigned = "unsigned" in resolved(type_, self.type_names) or "size_t" in type_
        if step == 0 or (step is not None and (step < 0) != down) or (down and (step is None or unsigned)):
            return False
        if {"threadIdx", "blockDim", "gridDim"} & _members(self.target.known.expand(loop.step)):
            return False  # it goes from thread to thread, which have turns apart already
        if not unsigned and self._is_unsigned(loop.bound) and not self._not_negative(loop.start):
            return False
        most, stride = self.target.largest(loop.bound), step if step is not None else self.target.largest(loop.step)
        return bytes_ > 4 or (stride is not None and (most or 0) + _MOST_LANES * abs(stride) <= INT_LIMIT)

    def _goes_on(self, counter: str) -> bool:
        """Whether some loop begins where the one before it ended."""
        return any(s.var == counter and counter in names_in(s.start) for s in loops(self.kernel.body))

    def _is_unsigned(self, e: Expr) -> bool:
        """Whether a comparison with the value may be one of unsigned numbers."""
        for x in walk_expr(self.target.known.expand(e)):
            match x:
                case Name(text) if text not in BUILTINS and "unsigned" in (self.type_of(text) or "unsigned"):
                    return True
                case Cast(type_) if "unsigned" in (named := resolved(type_, self.type_names)) or "size_t" in named:
                    return True
                case Member() | Literal() if not isinstance(x, Literal) or "u" in x.text.lower():
                    return True
        return False

    def _not_negative(self, start: Expr) -> bool:
        value = self.target.poly(start).value
        return (value is not None and value >= 0) or self._is_unsigned(start)

    def _keeps_apart(self, loop: For, private: frozenset[str]) -> bool:
        """Whether no turn writes to an array of the thread's own that others see, or moves a pointer."""
        changed = names_changed(self.told(loop.body)) | names_assigned(loop.body)
        private |= {name for name, array in self.own.items() if array.is_of(loop)}
        arrays = {s.name for s in walk_stmts(self.kernel.body) if isinstance(s, Declare) and s.dims}
        moved = {s.target.text for s in walk_stmts(loop.body) if isinstance(s, Assign) and isinstance(s.target, Name)}
        return not (changed & arrays - private or moved & self.pointers.roots.keys() - private)

    def _one_way(self, found: tuple[Access, ...]) -> bool:
        """Whether each buffer that turns write is reached by one name only, and atomics are such that lanes may do them
        in any order."""
        for root in {a.root for a in found if a.kind != "read"}:
            if len({a.pointer for a in found if a.root == root}) > 1:
                return False
        atomics = [a for a in found if a.kind == "atomic"]
        return not self.target.exact or all(self._is_whole(a) for a in atomics)

    def _is_whole(self, a: Access) -> bool:
        return integer_bytes(resolved(self.pointers.elements[a.pointer], self.type_names)) is not None

    def _foldable(self, name: str, operator: str) -> bool:
        type_ = self.type_of(name) or ""
        if type_ == "bool":
            return operator not in ("sum", "product")
        if integer_bytes(type_) is not None:
            return True
        if type_ not in FLOATING or operator in ("and", "or", "xor"):
            return False
        return not (self.target.exact and OPERATORS[operator].reorders)

    def _compensates(self, sum_: Compensated) -> bool:
        """Whether a compensated sum may be put together in another order, and both its parts are of one type."""
        types = {self.type_of(n) for n in sum_.names}
        return len(types) == 1 and types <= {"float", "double"} and self._foldable(sum_.value, "sum")

    def _tells_last(self, folds: Folds, loop: For) -> bool:
        """Whether lanes can tell which of equal ones was the last: a turn before all turns stands for none."""
        if not any(b.last and b.kept for b in folds.bests):
            return True
        type_ = resolved(loop.type or self.target.known.types.get(loop.var, ""), self.type_names)
        return type_ in ("int", "long", "long long")


def _members(e: Expr) -> set[str]:
    return {x.base.text for x in walk_expr(e) if isinstance(x, Member) and isinstance(x.base, Name)}


def _declared_in(loop: For) -> frozenset[str]:
    """What is declared inside the loop, inner loops' counters and its own included."""
    inner = {s.var for s in loops(loop.body) if s.type is not None}
    return frozenset({s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)} | inner | {loop.var})


def _without_breaks(body: Block, inside: bool = False) -> Block:
    """The statements without the breaks of inner loops, which end nothing but these."""
    kept = tuple(s for s in body if not (inside and isinstance(s, Jump) and s.keyword == "break"))
    return tuple(with_blocks(s, partial(_without_breaks, inside=inside or isinstance(s, For | While))) for s in kept)


def _number_at(loop: For, body: Block, name: str, known: int | None = None) -> int | None:
    """The number that a variable is where a loop begins that stands in a block; ``known``: at the block's begin."""
    for s in body:
        if s is loop:
            return known
        inner = next((b for b in blocks_of(s) if any(x is loop for x in walk_stmts(b))), None)
        if inner is not None:
            return _number_at(loop, inner, name, None if isinstance(s, For | While) else known)
        if isinstance(s, Declare) and s.name == name:
            known = None if s.init is None else integer(s.init)
        elif name in names_assigned(s):
            known = None
    return None


def _ahead(first: Iterable[Access], others: Iterable[Access]) -> bool:
    """Whether one turn may do the first part ahead of what all others do: nobody looks at what it writes."""
    both = (tuple(first), tuple(others))
    return all(
        not {a.root for a in one if a.kind != "read"} & {a.root for a in two if a.kind == "read"}
        for one, two in (both, both[::-1])
    )
