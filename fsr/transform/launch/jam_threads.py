"""jam-threads: one thread does the work of several that stand a block's width apart, statement by statement.

Thread coarsening by unroll-and-jam (Magni, Dubach, O'Boyle, "A large-scale cross-architecture evaluation of
thread-coarsening", SC 2013): where all threads walk over the same edges, weights or centres, what a turn loads and
computes for all of them is loaded and computed once for several, and their own chains of operations overlap. Each
thread's operations stay as they were, in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.calls import is_load
from fsr.analysis.common_values import CommonValues
from fsr.analysis.effects import Unclear
from fsr.analysis.functions import hiding_macros
from fsr.analysis.macros import expanded
from fsr.analysis.threads import AXES
from fsr.analysis.types import INT, type_of
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    For,
    If,
    KernelForm,
    Literal,
    Member,
    Name,
    Param,
    Stmt,
)
from fsr.source.mapping import substitute
from fsr.source.walk import Block, exprs_of, fresh, identifiers, names_assigned, walk_expr, walk_stmts
from fsr.transform.details.thread_arrays import bytes_of
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.jam_gain import Weigher, Work
from fsr.transform.launch.jammed import Jam, assignable
from fsr.transform.launch.nested_exits import without_exits
from fsr.transform.launch.pointwise import pointwise
from fsr.transform.launch.told_ids import with_ids
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, always, largest, largest_timed
from fsr.transform.target import Target, target_of, targets

FACTORS = (4, 2, 8)
_MOST_WORDS, _MANY_WORDS = 160, 64  # registers of all of a thread's ids
_MOST_GAIN, _LEAST_GAIN = 2.5, 1.01
_SLACK = 1 << 20  # ids beyond the bound that the last blocks may compute


class JamThreads:
    """Each thread does ``factor`` threads along one axis of the grid."""

    name = "jam-threads"
    aims_at = frozenset({"latency", "instructions", "compute", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Along each axis with several blocks, where threads have a loop and something in it in common."""
        for target in () if subject.keep_launch else targets(subject):
            for axis in AXES:
                shared = subject.once((self.name, target.region, axis), partial(_shared, target, axis))
                if shared is None:
                    continue
                for rank, factor in enumerate(FACTORS):
                    made = shared.made(factor)
                    if made is not None and made.words * factor <= _MOST_WORDS:
                        gain = _gain(subject, shared, factor, made.words * factor) - 0.01 * rank
                        params = (("factor", factor), ("along", axis))
                        yield Move(self.name, target.region, params, max(gain, _LEAST_GAIN))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads do several ids each."""
        target, axis, factor = target_of(subject, move), str(move.param("along")), int(move.param("factor"))
        shared = _shared(target, axis)
        made = None if shared is None else shared.made(factor)
        assert shared is not None
        assert made is not None
        kernel = replace(target.kernel, body=made.body, params=(*target.kernel.params, *made.params))
        return rewritten(target, move, kernel, launch=lambda one: _regrid(one, axis, factor, made.args))


def _regrid(launch: Launch, axis: str, factor: int, args: tuple[ScalarArgument, ...]) -> Launch:
    """The launch with as many blocks less along the axis."""
    grid = [f"ceil_div({n}, {factor})" if a == axis else n for a, n in zip(AXES, launch.grid, strict=True)]
    return replace(launch, grid=(grid[0], grid[1], grid[2]), args=(*launch.args, *args))


@dataclass(frozen=True)
class _Made:
    body: Block
    params: tuple[Param, ...]
    args: tuple[ScalarArgument, ...]
    words: int


@dataclass(frozen=True)
class _Shared:
    """A kernel whose threads along an axis have something in common. ``kernel``: without early exits; ``blocks``: the
    name of what it is told of their number; ``work``: of a thread."""

    target: Target
    axis: str
    kernel: KernelForm
    blocks: str
    common: CommonValues
    weigher: Weigher
    work: Work

    def made(self, factor: int) -> _Made | None:
        """The body for ``factor`` threads; None where a variable cannot be an array."""
        target, taken = self.target, self.target.names | identifiers(self.kernel.body) | {self.blocks}
        block = Member(Name("blockIdx"), self.axis)
        count = target.launch.grid[AXES.index(self.axis)]

        def told(stmts: Block, u: str) -> Block:
            mine = Binary("+", Binary("*", block, Literal(str(factor))), Name(u))
            return with_ids(stmts, {("blockIdx", self.axis): mine})

        jam = Jam(
            self.common, factor, taken=taken, told=told, worth=self._worth, types=target.known.types,
            size=partial(_words, target),
        )  # fmt: skip
        chain, core = _guards(self.kernel.body, self)
        exists = None if self._exact(factor) else Binary("<", Binary("+", Binary("*", block, Literal(str(factor))),
                                                                     Name(jam.u)), Name(self.blocks))  # fmt: skip
        try:
            body = jam.whole(chain, core, self.kernel.body, exists)
        except Unclear:
            return None
        if self.blocks not in identifiers(body):
            return _Made(body, (), (), jam.words)
        passed = Param("unsigned int", self.blocks)
        return _Made(body, (passed,), (ScalarArgument("uint32", count),), jam.words)

    def _exact(self, factor: int) -> bool:
        """Whether there is no thread too many, or what they would do is guarded by the kernel's own tests."""
        target = self.target
        count = target.launch.grid[AXES.index(self.axis)]
        if always(target.contract, f"({count}) % {factor} == 0"):
            return True
        point = pointwise(target)
        if point is None or self.axis not in point.bounds:
            return False
        most = largest(target.contract, point.bounds[self.axis][1])
        return most is not None and most <= INT_LIMIT - _SLACK

    def _worth(self, s: If) -> bool:
        return self.quiet(s.test) and self.weigher.work(s.then).worth

    def quiet(self, e: Expr) -> bool:
        """Whether evaluating an expression changes nothing."""
        calls = [x for x in walk_expr(e) if isinstance(x, Call) and not is_load(x)]
        computes = self.target.functions.only_computes
        return all(isinstance(c.callee, Name) and (computes(c.callee.text) or c.callee.text in self.target.type_names)
                   for c in calls)  # fmt: skip


def _shared(target: Target, axis: str) -> _Shared | None:
    """What threads along an axis have in common; None where that is too little, or the kernel is none of the kind."""
    count = target.launch.grid[AXES.index(axis)]
    kernel = _plain(target)
    if count == "1" or kernel is None:
        return None
    blocks = fresh("blocks", target.names)
    whole = partial(_is_whole, target)
    owned = _owned(kernel, target.names)
    body = without_exits(with_ids(owned, {("gridDim", axis): Name(blocks)}), whole)
    if body is None:
        return None
    kernel = replace(kernel, body=body)
    common = CommonValues(kernel, axis, target.functions, target.type_names, target.may_alias)
    own = {s.name for s in walk_stmts(body) if isinstance(s, Declare)}
    own |= {s.var for s in walk_stmts(body) if isinstance(s, For) and s.type is not None}
    if (common.apart | names_assigned(body)) - own:
        return None  # something of the file is a thread's own
    weigher = Weigher(common, partial(_turns, target))
    found = _Shared(target, axis, kernel, blocks, common, weigher, Work())
    chain, core = _guards(body, found)
    work = weigher.work((*(s for lead, _ in chain for s in lead), *core))
    return replace(found, work=work) if work.worth else None


def _plain(target: Target) -> KernelForm | None:
    """The kernel, with macros written out where these hide variables; None where threads cooperate."""
    for kernel in (target.kernel, expanded(target.kernel, target.source)):
        hidden = identifiers(kernel.body) & hiding_macros(target.source)
        if not hidden and not cooperates(replace(target, kernel=kernel)) and "volatile" not in _types(kernel):
            return kernel
    return None


def _types(kernel: KernelForm) -> str:
    declared = [s for s in walk_stmts(kernel.body) if isinstance(s, Declare)]
    return " ".join([*(p.type for p in kernel.params), *(s.type for s in declared)])


def _guards(body: Block, shared: _Shared) -> tuple[list[tuple[Block, Expr]], Block]:
    """The tests around all that a kernel does, with what is declared before each, and what it does."""
    chain: list[tuple[Block, Expr]] = []
    known = set[str]()
    while True:
        lead, last = [s for s in body[:-1] if not isinstance(s, Comment)], body[-1] if body else None
        known |= {s.name for s in lead if isinstance(s, Declare)}
        if not isinstance(last, If) or last.orelse or not all(_prepares(s, known, shared) for s in lead):
            return chain, body
        if not shared.quiet(last.test) or not shared.weigher.work(last.then).worth:
            return chain, body
        chain.append((tuple(lead), last.test))
        body = last.then


def _prepares(s: Stmt, known: set[str], shared: _Shared) -> bool:
    """Whether a statement does no more than to set a variable that is declared with the others."""
    target = isinstance(s, Declare) or (isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in known)
    return target and all(map(shared.quiet, exprs_of(s)))


def _owned(kernel: KernelForm, taken: frozenset[str]) -> Block:
    """The body with variables of its own in place of arguments that it changes."""
    changed = [p for p in kernel.params if p.name in names_assigned(kernel.body)]
    own = {p.name: Name(fresh(f"own_{p.name}", taken)) for p in changed}
    start = (Declare(assignable(p.type), own[p.name].text, Name(p.name)) for p in changed)
    return (*start, *substitute(kernel.body, own))


def _is_whole(target: Target, e: Expr) -> bool:
    return type_of(e, target.known.types, target.aliases) == INT


def _turns(target: Target, loop: For) -> int | None:
    length = target.size_text(Binary("-", loop.bound, loop.start))
    return None if length is None else largest_timed(target.contract, f"max({length}, 1)")


def _words(target: Target, s: Declare) -> int:
    """Registers of a variable of a thread."""
    words = max(1, (bytes_of(target, s.type.removeprefix("const ")) or (8 if s.type.endswith(("*", "&")) else 4)) // 4)
    for extent in s.dims:
        words *= target.poly(extent).value or _MOST_WORDS
    return words


def _gain(subject: Subject, shared: _Shared, factor: int, words: int) -> float:
    """The guess: by instructions, less where registers are many, or threads few."""
    launch = shared.target.launch
    text = " * ".join(f"({n})" for n in (*launch.grid, *launch.block))
    threads = (largest_timed(shared.target.contract, text) or 0) / factor
    filled = min(1.0, threads / (subject.gpu.sm_count * subject.gpu.max_threads_per_sm / 4))
    room = 1.0 if words <= _MANY_WORDS else 0.6
    gain = 1.0 + (min(shared.work.speedup(factor), _MOST_GAIN) - 1.0) * room
    return 1.0 + (gain - 1.0) * filled if filled > 0.25 else _LEAST_GAIN
