"""spread-loop: the turns of a loop that do not depend on one another, a thread each, or a few.

A thread that goes through a row leaves a GPU with as many threads as there are rows, and 32 neighbours read 32 rows.
With a thread a turn there are more of them, and neighbours have neighbouring turns. Each is told the ids that the
thread of before had, whatever the kernel takes them for. Where a loop holds nothing but another one whose turns do not
depend on one another either, a thread may have a turn of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import accesses_in, declared_arrays
from fsr.analysis.conditions import exclusive
from fsr.analysis.dependence import parallel
from fsr.analysis.macros import expanded
from fsr.analysis.polynomial import Poly
from fsr.analysis.threads import AXES
from fsr.analysis.types import integer_bytes
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import (
    Assign,
    Binary,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    KernelForm,
    Literal,
    Name,
    Param,
    Stmt,
    While,
)
from fsr.source.loop_heads import outermost_loops
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    Block,
    base_name,
    fresh,
    integer,
    is_zero,
    names_in,
    names_mentioned,
    walk_stmts,
)
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.pointwise import id_expression
from fsr.transform.launch.told_ids import ids_in, with_ids
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, always, largest, largest_timed
from fsr.transform.target import Target, part_of, region_in, target_of, targets

THREADS = (256, 128)
ORDERS = ("inner", "outer")  # neighbours have neighbouring turns, or the neighbours that they had
EACH = (1, 8)  # turns a thread, far apart: what they have in common is computed once
NESTS = ("outer", "inner")  # of two loops: neighbours have neighbouring turns of the one around, or of the one within
LEAST_TURNS = 8
_MOST_GAIN, _LEAST_GAIN = 6.0, 1.1


@dataclass(frozen=True)
class _Spread:
    """``body``: of the kernel; ``loop``: of it, whose turns are spread; ``turns``: over how many threads, as a size
    expression; ``threads``: those of the launch; ``within``: the only loop in it, whose turns may be spread too, and
    how many these are."""

    body: Block
    loop: For
    turns: str
    threads: str
    within: tuple[For, str] | None = None

    @property
    def all(self) -> str:
        """All threads of the new launch."""
        return f"({self.turns}) * ({self.threads})"

    @property
    def deep(self) -> str:
        """The same, where the turns of both loops are spread."""
        return f"({self.within[1]}) * {self.all}" if self.within else self.all


class SpreadLoop:
    """A thread, or one for a few, a turn of one loop."""

    name = "spread-loop"
    aims_at = frozenset({"occupancy", "latency", "bandwidth", "uncoalesced"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move an order and a block size for the first loop that may be spread."""
        for target in () if subject.keep_launch else targets(subject):
            spread = _spread(target)
            if spread is None:
                continue
            now = max(largest_timed(target.contract, spread.threads) or 1, 1)
            gain = max(_LEAST_GAIN, min(_MOST_GAIN, subject.gpu.sm_count * subject.gpu.max_threads_per_sm / now))
            region = region_in(target, f"loop:{spread.loop.var}")
            chosen = ((o, e, t) for o in ORDERS for e in EACH for t in THREADS)
            for rank, (order, each, threads) in enumerate(chosen):
                params = (("order", order), ("each", each), ("threads", threads))
                yield Move(self.name, region, params, gain - 0.02 * rank)
            if spread.within is not None:
                for rank, (nest, threads) in enumerate((n, t) for n in NESTS for t in THREADS):
                    both = (("order", "inner"), ("each", 1), ("threads", threads), ("nest", nest))
                    yield Move(self.name, region, both, gain + 0.1 - 0.02 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with a thread a turn."""
        target = target_of(subject, move)
        spread = _spread(target)
        assert spread is not None
        assert part_of(move) == f"loop:{spread.loop.var}"
        nest = str(dict(move.params).get("nest", ""))
        each = replace(spread, turns=f"ceil_div({spread.turns}, {move.param('each')})")
        made = _Made(target, spread if nest else replace(each, within=None), str(move.param("order")), nest)
        kernel = target.kernel
        bounds = (str(move.param("threads")),) if kernel.launch_bounds else ()
        changed = replace(
            kernel, body=made.body(), params=(*kernel.params, *made.params), launch_bounds=bounds
        )  # fmt: skip
        return rewritten(target, move, changed, launch=lambda one: made.launch(one, int(move.param("threads"))))


class _Made:
    """The new kernel's parts. ``params``, ``args``: what is passed beside what was."""

    def __init__(self, target: Target, spread: _Spread, order: str, nest: str) -> None:
        self.target, self.spread, self.order, self.nest = target, spread, order, nest
        self.params: list[Param] = []
        self.args: list[ScalarArgument] = []
        self._names = set(target.names)

    def _name(self, wanted: str) -> str:
        name = fresh(wanted, self._names)
        self._names.add(name)
        return name

    def _passed(self, wanted: str, size: str) -> Expr:
        """A number that the kernel is passed, or writes where it is one."""
        if size.isdigit():
            return Literal(f"{size}u")
        name = self._name(wanted)
        self.params.append(Param("unsigned int", name))
        self.args.append(ScalarArgument("uint32", size))
        return Name(name)

    def body(self) -> Block:
        """The kernel's body, in which every thread has one turn."""
        spread, loop = self.spread, self.spread.loop
        thread, turn, rest = (self._name(n) for n in ("thread", "turn", "rest"))
        turns, total = self._passed("turns", spread.turns), self._passed("threads_in_all", spread.deep)
        one, mine, every = _one_turn(loop, turn, turns), list[Stmt](), turns
        if spread.within is not None:
            one, mine, every = self._both(turn, turns, *spread.within)
        before = every if self.order == "inner" else self._passed("threads_before", spread.threads)
        told, ids = self._ids(Name(rest))
        kept = replace_stmt(spread.body, loop, (one,))
        turn_by, rest_by = ("%", "/") if self.order == "inner" else ("/", "%")
        mine = [
            Declare("const unsigned int", turn, Binary(turn_by, Name(thread), before)),
            *mine,
            Declare("unsigned int", rest, Binary(rest_by, Name(thread), before)),
        ]
        loops = " and ".join(s.var for s in (loop, *(spread.within or ())[:1]) if isinstance(s, For))
        return (
            Comment(f"// a turn of the loop over {loops} each, with the ids of the thread that went through all"),
            Declare("const unsigned int", thread, id_expression("x")),
            If(Binary("<", Name(thread), total), (*mine, *ids, *with_ids(kept, told))),
        )

    def _both(self, turn: str, turns: Expr, inner: For, size: str) -> tuple[For, list[Stmt], Expr]:
        """Both loops with one turn, how ``turn`` is taken apart for them, and how many turns there are."""
        more, at, within = self._passed("turns_within", size), self._name("turn_around"), self._name("turn_within")
        one = replace(_one_turn(self.spread.loop, at, turns), body=(_one_turn(inner, within, more),))
        by, near, far = (turns, at, within) if self.nest == "outer" else (more, within, at)
        apart: list[Stmt] = [
            Declare("const unsigned int", near, Binary("%", Name(turn), by)),
            Declare("const unsigned int", far, Binary("/", Name(turn), by)),
        ]
        return one, apart, Binary("*", turns, more)

    def _ids(self, rest: Name) -> tuple[dict[tuple[str, str], Expr], list[Stmt]]:
        """What stands for each id and extent of before, and the statements that take ``rest`` apart into them."""
        launch = self.target.launch
        used = ids_in(self.spread.body)
        told: dict[tuple[str, str], Expr] = {}
        wide: list[tuple[str, str, str, str]] = []
        for index, extent, sizes in (("threadIdx", "blockDim", launch.block), ("blockIdx", "gridDim", launch.grid)):
            for axis, size in zip(AXES, sizes, strict=True):
                told |= {(index, axis): Literal("0u"), (extent, axis): Literal("1u")}
                if size != "1":
                    wide.append((index, extent, axis, size))
        steps: list[Stmt] = []
        for index, extent, axis, size in wide:
            last = (index, extent, axis, size) == wide[-1]
            name = self._name(f"{index}_{axis}")
            told[index, axis] = Name(name)
            if not last or (extent, axis) in used:
                told[extent, axis] = count = self._passed(f"{extent}_{axis}", size)
            steps.append(Declare("const unsigned int", name, rest if last else Binary("%", rest, count)))
            steps += [] if last else [Assign(rest, "/=", count)]
        return told, steps

    def launch(self, launch: Launch, threads: int) -> Launch:
        """The launch, with one thread for every turn."""
        return replace(
            launch, grid=(f"ceil_div({self.spread.deep}, {threads})", "1", "1"), block=(str(threads), "1", "1"),
            args=(*launch.args, *self.args),
        )  # fmt: skip


def _one_turn(loop: For, turn: str, turns: Expr) -> For:
    """A loop of every ``turns``-th turn, from one on."""
    first: Expr = Cast("int", Name(turn), "c")
    start = first if is_zero(loop.start) else Binary("+", loop.start, first)
    return replace(loop, start=start, step=Cast("int", turns, "c"), pragmas=())


def _spread(target: Target) -> _Spread | None:
    """The first loop whose turns may be spread, of a kernel that writes nowhere else; macros that hide indices are
    written out."""
    if cooperates(target):
        return None
    kernels = dict.fromkeys((target.kernel, expanded(target.kernel, target.source)))
    return next((found for k in kernels if (found := _first_spread(target, k)) is not None), None)


def _first_spread(target: Target, kernel: KernelForm) -> _Spread | None:
    launch = target.launch
    threads = " * ".join(f"({extent})" for extent in (*launch.block, *launch.grid) if extent != "1") or "1"
    arrays = frozenset(p.name for p in kernel.params if p.is_pointer) | declared_arrays(kernel.body)
    for loop in outermost_loops(kernel.body):
        if not isinstance(loop, For):
            continue
        length = _length(target, loop)
        if length is None:
            continue
        spread = _Spread(kernel.body, loop, f"max({length}, 0)", threads)
        rest = replace_stmt(kernel.body, loop, ())
        if any(isinstance(s, For | While) for s in walk_stmts(rest)):
            continue  # which every thread would go through
        if any(a.writes or a.kind in ("atomic", "opaque") for a in accesses_in(rest, arrays)):
            continue
        most = largest(target.contract, spread.all)
        if most is None or most > INT_LIMIT or (largest_timed(target.contract, length) or 0) < LEAST_TURNS:
            continue
        ways = (one for one in (spread, _begun_anew(spread)) if one is not None and _independent(target, one))
        if (way := next(ways, None)) is not None:
            return _with_inner(target, way)
    return None


def _length(target: Target, loop: For) -> str | None:
    """How often a loop goes round, one by one, as a size expression."""
    if integer(loop.step) != 1 or loop.relation not in ("<", "<=") or loop.type is None:
        return None
    return target.size_text(Binary("-", exclusive(loop.bound, loop.relation), loop.start))


def _with_inner(target: Target, spread: _Spread) -> _Spread:
    """With the loop that is all there is of the loop, but for places of extremes that begin anew, where its turns may
    be spread, too."""
    *own, last = spread.loop.body or (None,)
    if not isinstance(last, For):
        return spread
    places = _places(last)
    if not all(isinstance(s, Declare) and isinstance(s.init, Literal) and s.name in places for s in own):
        return spread
    length, inner = _length(target, last), replace(last, body=(*(s for s in own if s is not None), *last.body))
    loop = replace(spread.loop, body=(inner,))
    found = replace(spread, body=replace_stmt(spread.body, spread.loop, (loop,)), loop=loop)
    if length is None or not _independent(target, replace(found, loop=inner), loop):
        return spread
    found = replace(found, within=(inner, f"max({length}, 0)"))
    most = largest(target.contract, found.deep)
    return found if most is not None and most <= INT_LIMIT else spread


def _independent(target: Target, spread: _Spread, around: For | None = None) -> bool:
    """``around``: a loop from nought that the loop is in, whose length is not nought in any of its turns."""
    length = target.known.poly(around.bound) if around and is_zero(around.start) and around.relation == "<" else None
    found = parallel(
        replace(target.kernel, body=spread.body), spread.loop, aliasing=target.aliasing, known=target.known,
        functions=target.functions, nonzero=lambda factor: factor == length or nonzero(target, factor),
    )  # fmt: skip
    return found is not None and not found.folds


def _begun_anew(spread: _Spread) -> _Spread | None:
    """With the place of an extreme (``place = 0`` at the kernel's head, set beside ``most`` where something larger
    comes) as a number of each turn's own, that begins as it does at the head, with nought where it does with nothing:
    right where something is larger than what ``most`` begins with in every turn, which tests decide. None where there
    is no such variable."""
    body, loop = spread.body, spread.loop
    elsewhere = names_mentioned(replace_stmt(tuple(s for s in body if not isinstance(s, Declare)), loop, ()))
    elsewhere |= frozenset(n for s in body if isinstance(s, Declare) and s.init is not None for n in names_in(s.init))
    elsewhere |= frozenset(n for e in (loop.start, loop.bound, loop.step) for n in names_in(e))
    places = _places(loop) - elsewhere
    heads = [s for s in body if isinstance(s, Declare) and not (s.dims or s.qualifiers)]
    own = [s for s in heads if s.name in places and (isinstance(s.init, Literal) or (s.init is None and _counts(s)))]
    if not own:
        return None
    each = replace(loop, body=(*(replace(s, init=s.init or Literal("0")) for s in own), *loop.body))
    left = tuple(s for s in replace_stmt(body, loop, (each,)) if not any(s is one for one in own))
    return replace(spread, body=left, loop=each)


def _counts(s: Declare) -> bool:
    return integer_bytes(s.type) is not None


def _places(loop: For) -> frozenset[str]:
    """Variables that a turn sets beside an extreme of its own only: where a test of it says so, as it is set."""
    anew = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}
    beside = list[str]()
    for s in walk_stmts(loop.body):
        if isinstance(s, If):
            plain = (a for a in s.then if isinstance(a, Assign) and a.op == "=")
            names = [a.target.text for a in plain if isinstance(a.target, Name)]
            if names_in(s.test) & anew & set(names):
                beside += names
    every = [base_name(s.target) for s in walk_stmts(loop.body) if isinstance(s, Assign)]
    return frozenset(n for n in beside if beside.count(n) == every.count(n)) - anew


def nonzero(target: Target, factor: Poly) -> bool:
    """Whether sizes make up a number that is nowhere zero."""
    text = target.poly_text(factor)
    return text is not None and always(target.contract, f"{text} != 0")
