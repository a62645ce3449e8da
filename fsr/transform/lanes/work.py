"""A thread's statements for a group of lanes: loops dealt out, what they hand on put together, stores by one lane.

All else is done by all lanes alike: they were told the same ids, so that they hold the same values and go the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access
from fsr.analysis.calls import is_atomic
from fsr.analysis.effects import Unclear
from fsr.analysis.operators import OPERATORS
from fsr.analysis.types import resolved
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Jump,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
    number,
)
from fsr.source.mapping import with_blocks
from fsr.source.walk import (
    Block,
    blocks_of,
    exprs_of,
    fresh,
    integer,
    jumps,
    names_assigned,
    names_changed,
    names_mentioned,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.lanes.compensated import Compensated, noting_last
from fsr.transform.lanes.folds import Best, noting_turns
from fsr.transform.lanes.linear import wide
from fsr.transform.lanes.loops import LEAST_TURNS, Loops, Shared
from fsr.transform.lanes.running import Run
from fsr.transform.rows.share import Group, plus, set_to_zero, times

_RUNNING, _LINEAR, _STEP = "fsr_lanes_running_sum", "fsr_lanes_running_linear", "fsr_linear_step"
_COMPENSATED = "fsr_lanes_compensated_sum"
_SIGNS = {"0": {"float": "0.0f", "double": "0.0"}, "1": {"float": "1.0f", "double": "1.0"}}


@dataclass(frozen=True)
class _Unit:
    """``kind``: 'all' lanes, the 'leader' (several statements at times), 'told' by it, 'shared', or a 'nest' of
    ``inner`` units, one list a block. ``repeated``: it stands in a loop that all lanes run."""

    kind: str
    stmts: Block
    accesses: tuple[Access, ...] = ()
    repeated: bool = False
    inner: tuple[tuple[_Unit, ...], ...] = ()

    @property
    def roots(self) -> frozenset[str]:
        """The buffers that it touches."""
        return frozenset(a.root for a in self.accesses)

    @property
    def writes(self) -> frozenset[str]:
        """The buffers that it changes."""
        return frozenset(a.root for a in self.accesses if a.kind != "read")


class Work:
    """The work of a kernel's threads with some loops shared. Raises Unclear where a statement's effect is not known.
    ``after``: names that are looked at behind it; ``repeated``: it is done several times."""

    def __init__(
        self, found: Loops, shared: Iterable[Shared], *, after: frozenset[str] = frozenset(), repeated: bool = False
    ) -> None:
        self._loops = found
        self._shared: Mapping[int, Shared] = {id(s.loop): s for s in shared}
        self._units = self._of(found.body, repeated, after)
        self._crossing = frozenset(_crossing(list(_flat(self._units))))

    @property
    def alone(self) -> bool:
        """Whether a lane goes through some loop as the thread did, alike or alone."""
        return any(self._left(s) for s in self._loops.body)

    def _left(self, s: Stmt) -> bool:
        if id(s) in self._shared:
            return False
        if isinstance(s, For | While) and not self._holds(s):
            turns = self._loops.turns(s) if isinstance(s, For) else None
            return turns is None or turns >= LEAST_TURNS
        return any(self._left(x) for block in blocks_of(s) for x in block)

    # ------------------------------------------------------------ units

    def _holds(self, s: Stmt) -> bool:
        return any(id(x) in self._shared for x in walk_stmts((s,)))

    def _of(self, body: Block, repeated: bool, after: frozenset[str]) -> tuple[_Unit, ...]:
        """The units of a block. ``after``: names that may be looked at when it is over."""
        last = max((n + 1 for n, s in enumerate(body) if self._holds(s)), default=0)
        tail = body[last:]
        found = [
            self._unit(s, repeated, after | names_mentioned(body[n + 1 :]))
            for n, s in enumerate(body[:last] if self._for_leader(tail, after) else body)
        ]
        if self._for_leader(tail, after):
            found.append(_Unit("leader", tail, self._loops.touched(tail), repeated))
        return tuple(found)

    def _for_leader(self, tail: Block, after: frozenset[str]) -> bool:
        """Whether one lane may do a block's last statements alone: they store something, leave nothing, and nobody
        looks at the variables that they set."""
        if not any(a.kind != "read" for a in self._loops.touched(tail)) or _leaves(tail):
            return False
        declared = {s.name for s in walk_stmts(tail) if isinstance(s, Declare)}
        sets = names_assigned(tail) | names_changed(self._loops.told(tail))
        return not (sets - declared - self._loops.pointers.roots.keys()) & after

    def _unit(self, s: Stmt, repeated: bool, after: frozenset[str]) -> _Unit:
        shared = self._shared.get(id(s))
        if shared is not None:
            return _Unit("shared", (s,), shared.accesses, repeated)
        match s:
            case If() | Scope():
                tests = self._loops.touched(ExprStmt(e) for e in exprs_of(s))
                return _Unit("nest", (s,), tests, repeated, tuple(self._of(b, repeated, after) for b in blocks_of(s)))
            case For() | While():
                heads = self._loops.touched(ExprStmt(e) for e in exprs_of(s))
                again = names_mentioned((s,)) - {x.name for x in s.body if isinstance(x, Declare)}
                return _Unit("nest", (s,), heads, True, (self._of(s.body, True, after | again),))
        found = self._loops.touched((s,))
        if all(a.kind == "read" for a in found):
            return _Unit("all", (s,), found, repeated)
        plain = isinstance(s, ExprStmt) or not any(is_atomic(e) for e in walk_exprs((s,)))
        match s:
            case Declare(init=Call() as call, dims=()) | Assign(Name(), "=", Call() as call) if is_atomic(call):
                return _Unit("told", (s,), found, repeated)
        if isinstance(s, Declare) or (isinstance(s, Assign) and isinstance(s.target, Name)) or not plain:
            raise Unclear  # what an atomic tells one lane
        return _Unit("leader", (s,), found, repeated)

    # ------------------------------------------------------------ text

    def helpers(self, group: Group) -> frozenset[str]:
        """The device functions that the work calls."""
        found = set[str]()
        for shared in self._shared.values():
            found |= {group.helper(op) for op in shared.folds.plain.values()}
            found |= {group.helper("or") for _ in shared.folds.flags}
            if shared.run is not None:
                found |= {_RUNNING} if shared.run[0].factor is None else {_LINEAR, _STEP}
            found |= {_COMPENSATED for _ in shared.folds.sums}
            found |= {_finder(b) if b.kept else group.helper(b.operator) for b in shared.folds.bests}
        return frozenset(found)

    def body(self, group: Group, mask: Expr | None, taken: Iterable[str]) -> Block:
        """The statements. ``mask``: the lanes of the group, where these are not all of a warp."""
        return tuple(_Text(self, group, mask, set(taken)).block(self._units))

    @property
    def meets(self) -> bool:
        """Whether lanes wait for one another, or hand on more than folds."""
        met = any(u.writes & self._crossing or u.kind == "told" for u in _flat(self._units))
        return met or any(s.run or any(b.kept for b in s.folds.bests) for s in self._shared.values())


class _Text:
    """Writes units out."""

    def __init__(self, work: Work, group: Group, mask: Expr | None, taken: set[str]) -> None:
        self._work, self._group, self._mask, self._taken = work, group, mask, taken
        self._leads = Binary("==", Name(group.lane), Literal("0"))

    def block(self, units: Iterable[_Unit]) -> list[Stmt]:
        """The statements of units that follow one another."""
        found, above = list[Stmt](), list[Stmt]()
        for unit in units:
            new = self._unit(unit, above)
            if unit.writes & self._work._crossing:
                met = found[-1:] == [self._barrier()]
                new = [*([] if met else [self._barrier()]), *new, self._barrier()]
            found += new
            match found[-2:]:
                case [If(one, first, ()), If(two, then, ())] if one == two == self._leads:
                    found[-2:] = [If(self._leads, (*first, *then))]
            above += unit.stmts
        return found

    def _barrier(self) -> Stmt:
        return ExprStmt(Call(Name("__syncwarp"), () if self._mask is None else (self._mask,)))

    def _unit(self, unit: _Unit, above: list[Stmt]) -> list[Stmt]:
        match unit.kind:
            case "leader":
                return [If(self._leads, unit.stmts)]
            case "told":
                return self._told(unit.stmts[0])
            case "shared":
                return self._dealt(self._work._shared[id(unit.stmts[0])], above)
            case "nest":
                blocks = iter([tuple(self.block(inner)) for inner in unit.inner])
                return [with_blocks(unit.stmts[0], lambda _: next(blocks))]
        return list(unit.stmts)

    def _told(self, s: Stmt) -> list[Stmt]:
        """A statement that keeps what an atomic gives: one lane does it, and tells the others."""
        found = list[Stmt]()
        if isinstance(s, Declare) and s.init is not None:
            found.append(Declare(s.type.removeprefix("const "), s.name))
            s = Assign(Name(s.name), "=", s.init)
        assert isinstance(s, Assign)
        mask, size = self._mask or Literal("0xffffffffu"), number(self._group.size)
        sent = Call(Name("__shfl_sync"), (mask, s.target, number(0), size))
        return [*found, If(self._leads, (s,)), Assign(s.target, "=", sent)]

    def _dealt(self, shared: Shared, above: list[Stmt]) -> list[Stmt]:
        """The loop with its turns dealt out, and what must stand around it."""
        folds, types = shared.folds, self._work._loops
        neutral, behind = list[Stmt](), list[Stmt]()
        for name, operator in folds.plain.items():
            identity = OPERATORS[operator].identity
            if identity is not None and not (identity == "0" and set_to_zero(name, above)):
                text = _SIGNS[identity].get(types.type_of(name) or "", identity)
                neutral.append(Assign(Name(name), "=", Literal(text)))
            behind.append(Assign(Name(name), "=", self._group.fold(operator, Name(name))))
        held = [n for s in folds.sums for n in (s.value, s.lacks) if not set_to_zero(n, above)]
        neutral += [Assign(Name(n), "=", Literal(_SIGNS["0"][types.type_of(n) or ""])) for n in held]
        for name, value in folds.flags.items():
            mine = Cast("int", Binary("==", Name(name), value), "c")
            behind.append(If(self._group.fold("or", mine), (Assign(Name(name), "=", value),)))
        ahead: list[Stmt] = [If(Binary("!=", Name(self._group.lane), Literal("0")), tuple(neutral))] if neutral else []
        turns: dict[Best, str] = {b: self._fresh(f"{b.value}_turn") for b in folds.bests if b.kept}
        told, loop = list[Stmt](), shared.loop
        if shared.run is None:
            loop = self._strided(loop)
        else:
            told, loop = self._in_rounds(loop, *shared.run)
        for best in folds.bests:
            if best.kept:
                before: Expr = Binary("-", shared.loop.start, shared.loop.step) if best.last else Literal("0")
                ahead.append(Declare(loop.type or "", turns[best], before))
                behind += self._taken_over(best, turns[best])
            else:
                behind.append(Assign(Name(best.value), "=", self._group.fold(best.operator, Name(best.value))))
        last = {s: self._fresh(f"{s.value}_last") for s in folds.sums if s.orderly}
        for sum_ in folds.sums:
            ahead += [self._before_all(shared.loop, last[sum_])] if sum_ in last else []
            behind += self._put_together(sum_, shared.loop, last.get(sum_))
        loop = replace(loop, body=noting_last(noting_turns(loop.body, turns, loop.var), last, loop.var))
        whole = [*ahead, *told, loop, *behind]
        return [Scope(tuple(whole))] if turns or told or last else whole

    def _before_all(self, loop: For, name: str) -> Stmt:
        """A variable that is a turn ahead of all turns."""
        known = self._work._loops
        counter = loop.type or known.target.known.types[loop.var]
        start, step = integer(loop.start), integer(loop.step)
        if start is not None and step is not None:
            before: Expr = number(start - step)
        else:
            before = Binary("-", Cast("long long", loop.start, "c"), loop.step)
        return Declare("int" if resolved(counter, known.type_names) == "int" else "long long", name, before)

    def _put_together(self, sum_: Compensated, loop: For, last: str | None) -> list[Stmt]:
        """What makes one of the lanes' parts of a compensated sum."""
        down = ">" in loop.relation
        turn = number(0) if last is None else Unary("-", Name(last)) if down else Name(last)
        args = (Name(sum_.value), Name(sum_.lacks), turn)
        added: Stmt = ExprStmt(Call(Name(_COMPENSATED), args, (str(self._group.size),)))
        other: Stmt = Assign(Name(sum_.lacks), "=", Unary("-", Name(sum_.lacks)))
        return [added] if sum_.sign > 0 else [other, added, other]

    def _taken_over(self, best: Best, turn: str) -> list[Stmt]:
        """What all lanes take from the one that has found the best."""
        lane = self._fresh(f"{best.value}_lane")
        keys = (Name(best.value), *([Name(best.second[0])] if best.second else []), Name(turn))
        found = Call(Name(_finder(best)), keys, (str(self._group.size),))
        mask = self._mask or Literal("0xffffffffu")
        names = (best.value, *best.kept)
        sent = (Assign(Name(n), "=", Call(Name("__shfl_sync"), (mask, Name(n), Name(lane)))) for n in names)
        return [Declare("const int", lane, found), *sent]

    def _strided(self, loop: For) -> For:
        lane, size = Name(self._group.lane), self._group.size
        type_ = loop.type or self._work._loops.target.known.types[loop.var]
        step = integer(loop.step)
        if step is None:
            by: Expr = Binary("*", loop.step, number(size))
            start: Expr = plus(loop.start, Binary("*", lane, loop.step))
        else:
            by, offset = number(step * size), times(lane, number(abs(step)))
            start = plus(loop.start, offset) if step > 0 else Binary("-", loop.start, offset)
        return replace(loop, type=type_.removeprefix("const "), start=start, step=by)

    def _in_rounds(self, loop: For, run: Run, type_: str) -> tuple[list[Stmt], For]:
        """The loop in rounds of a turn a lane, where each has the sum that it goes on with, and what goes before."""
        lane, size, var = Name(self._group.lane), Literal(str(self._group.size)), Name(loop.var)
        counter = (loop.type or self._work._loops.target.known.types[loop.var]).removeprefix("const ")
        first, part, total = (Name(self._fresh(f"{run.name}_{what}")) for what in ("first", "part", "total"))
        mine = Binary(loop.relation, var, loop.bound)
        sum_ = Name(run.name)
        scale = None if run.factor is None else Name(self._fresh(f"{run.name}_scale"))
        most, ahead = self._most(run, type_)
        turn, one = self._turn(run, type_, mine, part, (scale, total), most), self._first(run, part)
        used = names_mentioned((*turn, *one))
        whole = _reached(sum_, *(e and self._from(e, number(self._group.size - 1)) for e in (scale, total)))
        round_ = (
            *([If(Binary(">=", sum_, most), (Jump("break"),))] if most is not None else ()),
            Declare(f"const {counter}", loop.var, plus(first, times(lane, loop.step))),
            *self._scanned(run, type_, mine, part, scale, total),
            *(self._up_to_before(run, type_, scale, total) if run.before in used else ()),
            *one,
            *turn,
            Assign(sum_, "=", whole if most is None else Call(Name("min"), (whole, most))),
        )
        step = integer(loop.step)
        by = times(loop.step, size) if step is None else number(step * self._group.size)
        return ahead, For(counter, first.text, loop.start, loop.relation, loop.bound, by, round_)

    def _scanned(self, run: Run, type_: str, mine: Expr, part: Name, scale: Name | None, total: Name) -> list[Stmt]:
        """What a lane adds, and what it and all before it do."""
        zero, one = (Literal(_SIGNS[n].get(type_, n)) for n in "01")
        size = (str(self._group.size),)
        if scale is None:
            sums = Call(Name(_RUNNING), (part,), size)
            added = If(mine, run.added(part))
            return [Declare(type_, part.text, zero), added, Declare(f"const {type_}", total.text, sums)]
        zero, one = (Literal(_SIGNS[n].get(wide(type_), n)) for n in "01")
        return [
            Declare(wide(type_), total.text, zero),
            Declare(wide(type_), scale.text, one),
            If(mine, run.added(total, scale)),
            ExprStmt(Call(Name(_LINEAR), (scale, total), size)),
        ]

    def _up_to_before(self, run: Run, type_: str, scale: Name | None, total: Name) -> list[Stmt]:
        """What the variable is before a lane's turn."""
        found, told = list[Stmt](), list[Expr | None]()
        for each, what in ((scale, "scale_above"), (total, "above")):
            name = None if each is None else Name(self._fresh(f"{run.name}_{what}"))
            told.append(name)
            if name is not None and each is not None:
                mask, size = self._mask or Literal("0xffffffffu"), Literal(str(self._group.size))
                shifted = Call(Name("__shfl_up_sync"), (mask, each, number(1), size))
                kept = type_ if scale is None else wide(type_)
                found.append(Declare(f"const {kept}", name.text, shifted))
        first = Binary("==", Name(self._group.lane), Literal("0"))
        before = Ternary(first, Name(run.name), _reached(Name(run.name), *told))
        return [*found, Declare(f"const {type_}", run.before, before)]

    def _from(self, value: Expr, lane: Expr) -> Expr:
        """What a lane of the group has."""
        mask = self._mask or Literal("0xffffffffu")
        return Call(Name("__shfl_sync"), (mask, value, lane, Literal(str(self._group.size))))

    def _most(self, run: Run, type_: str) -> tuple[Expr | None, list[Stmt]]:
        """From which count on no turn is done, and its declaration."""
        if run.limit is None or (isinstance(run.limit, Literal) and type_ == "int"):
            return run.limit, []
        most = self._fresh(f"{run.name}_most")
        return Name(most), [Declare(f"const {type_}", most, run.limit)]

    def _turn(self, run: Run, type_: str, mine: Expr, part: Name, reached: _Reached, most: Expr | None) -> list[Stmt]:
        """What a lane does in its turn."""
        body, test = run.body, mine
        told = run.told_by(Binary("!=", part, Literal("0")))
        match told:
            case (If(found, then, ()),):
                body, test = then, found
            case (_, *_):
                body = told
        if most is not None:
            test = Binary("&&", test, Binary("<", Name(run.before), most))
        after = Declare(f"const {type_}", run.after, _reached(Name(run.name), *reached))
        return [If(test, (*([after] if run.after in names_mentioned(body) else ()), *body))]

    def _first(self, run: Run, part: Name) -> list[Stmt]:
        """What the first lane that adds anything does ahead of all."""
        if not run.first:
            return []
        found = Binary("!=", part, Literal("0")), Binary("==", Name(run.before), Literal("0"))
        return [If(Binary("&&", *found), run.first), self._barrier()]

    def _fresh(self, wanted: str) -> str:
        name = fresh(wanted, self._taken)
        self._taken.add(name)
        return name


_Reached = tuple[Expr | None, Expr | None]
"""A factor, where there is one, and what is added."""


def _reached(start: Expr, scale: Expr | None, total: Expr | None) -> Expr:
    """What a variable comes to by steps of such a factor, that add so much together."""
    assert total is not None
    return Binary("+", start, total) if scale is None else Call(Name(_STEP), (scale, start, total))


def _finder(best: Best) -> str:
    then = f"_{best.second[1]}" if best.second else ""
    return f"fsr_lanes_{'last' if best.last else 'first'}_{best.operator}{then}"


def _flat(units: Iterable[_Unit]) -> Iterator[_Unit]:
    for unit in units:
        yield unit
        for inner in unit.inner:
            yield from _flat(inner)


def _crossing(units: list[_Unit]) -> Iterator[str]:
    """The buffers through which lanes see what others wrote."""
    for root in {r for u in units for r in u.writes}:
        users = [u for u in units if root in u.roots]
        alone = len(users) == 1 and not users[0].repeated
        if not alone and not all(u.kind == "leader" for u in users):
            yield root


def _leaves(body: Block) -> bool:
    """Whether statements may end the thread's work, or a turn of a loop around them."""
    return jumps(body) or any(isinstance(s, Return) for s in walk_stmts(body))
