"""A kernel in three parts: what a thread does once for all its points, what it does for each, and the block's fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from fsr.analysis.accesses import accesses
from fsr.analysis.calls import ATOMICS, is_load
from fsr.analysis.index_values import Values
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    If,
    Index,
    Literal,
    Name,
    Scope,
    Stmt,
    Unary,
)  # fmt: skip
from fsr.source.mapping import map_stmts, rewrite, substitute, with_exprs
from fsr.source.references import given_by_reference
from fsr.source.walk import (
    Block,
    base_name,
    contains_return,
    fresh,
    integer,
    names_assigned,
    names_changed,
    names_in,
    names_mentioned,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.fewer.called import called
from fsr.transform.fewer.commutes import Commutes, values_of
from fsr.transform.fewer.values import FOLDED, Frame, UnknownError, Value
from fsr.transform.gathered import Gathered
from fsr.transform.launch.cooperation import cooperate_in
from fsr.transform.launch.pointwise import continuing
from fsr.transform.target import Target
from fsr.transform.trees.arrays import Shared, shared_arrays
from fsr.transform.trees.threads import Threads


@dataclass
class Parts:
    """``lead`` is done once, ``points`` for each point, ``end`` by the block. ``own``: elements of shared memory that a
    thread has for itself before the block meets, as variables with what they are stored to; ``counted``: shared memory
    that points add to by one atomic function alone, and which; ``partial``: see Commutes.
    """

    target: Target
    axis: str
    partial: frozenset[str] = frozenset()
    lead: list[Stmt] = field(default_factory=list)
    points: list[Stmt] = field(default_factory=list)
    end: list[Stmt] = field(default_factory=list)
    own: dict[str, tuple[Index, str]] = field(default_factory=dict)
    gathered: list[Gathered] = field(default_factory=list)
    counted: dict[str, str] = field(default_factory=dict)
    ends_early: bool = False

    def __post_init__(self) -> None:
        self.taken = set(self.target.names)
        self.tables = frozenset[str]()  # shared memory that is written before all points alone
        kernel = self.target.kernel
        written = {a.array for a in accesses(kernel) if a.writes}
        pointers = {p.name for p in kernel.params if p.is_pointer}
        unwritten = pointers - written
        self.read_only = frozenset(
            p for p in unwritten if not any(self.target.may_alias(p, w) for w in pointers & written)
        )
        # What is read in front of all points is the same for every block, or blocks would race.
        self.commutes = Commutes(self.target, self.axis, frozenset(pointers), self.partial)
        self.values: Frame = values_of(kernel, self.target.aliases)

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found = fresh(wanted, self.taken)
        self.taken.add(found)
        return found

    # ------------------------------------------------------------ the cut

    def cut(self) -> bool:
        """Cut the kernel's body; says whether that could be done."""
        rest = list(self.target.kernel.body)
        while rest and self._goes_ahead(rest[0], rest[1:]):
            rest.pop(0)
        self.tables = frozenset(n for n in self._shared_in(tuple(rest)) if _is_only_read(n, tuple(rest)))
        self.commutes.read_only = frozenset()  # behind points, nothing read may go in front of them
        while rest and self._is_of_points(rest[0], rest[1:]):
            rest.pop(0)
        self._take_idle_declarations(rest)
        self.commutes.read_only = self.read_only
        if self.ends_early:
            points = continuing(tuple(self.points))
            if rest or points is None or self.own:
                return False
            self.points = list(points)
        stores: list[Stmt] = [Assign(place, "=", Name(name)) for name, (place, _) in self.own.items()]
        self.end = [*stores, *(g.added for g in self.gathered), *rest]
        self._set_apart()
        return bool(self.points or rest)

    def _goes_ahead(self, s: Stmt, rest: list[Stmt]) -> bool:
        """Put a statement in front of all points, or a variable of a point's to the points where nothing has been done
        for them yet."""
        if isinstance(s, Comment):
            (self.points if self.points else self.lead).append(s)
            return True
        if self._is_for_all(s, rest):
            self.lead.append(s)
            return True
        quiet = isinstance(s, Declare) and not self._shared_in((s,)) and not any(map(self._acts, walk_exprs((s,))))
        if quiet and not cooperate_in(self.target, (s,)):
            self.points.append(s)
            return True
        return False

    def _acts(self, e: Expr) -> bool:
        """Whether an expression may change memory."""
        if not isinstance(e, Call) or is_load(e):
            return False
        return not (isinstance(e.callee, Name) and self.target.functions.only_computes(e.callee.text))

    def _is_for_all(self, s: Stmt, rest: list[Stmt]) -> bool:
        """Whether a statement is the same for all points, and stays so; its values are known then."""
        if isinstance(s, Declare):
            if s.init is None and "__shared__" not in s.qualifiers:
                return False
            qualified = {"__shared__", "extern"} <= set(s.qualifiers)
            plain = replace(s, qualifiers=("__shared__",)) if qualified else s
            if "__shared__" not in s.qualifiers and self._changes(s, (*self.points, *self._before_end(rest))):
                return False
            return self.commutes.is_fixed((plain,), self.values)
        changed = names_changed((s,))
        if changed & {
            *variables(self.points),
            *(self._shared_in(tuple(self._before_end(rest))) - self._only_added(rest)),
        }:
            return False
        return self.commutes.is_fixed((s,), self.values)

    def _only_added(self, rest: list[Stmt]) -> frozenset[str]:
        """Shared memory that points change by atomics, if at all: what it holds before them stays, once for all."""
        stmts = tuple(self._before_end(rest))
        return self._shared_in(stmts) - names_changed(stmts)

    def _changes(self, s: Declare, stmts: Block) -> bool:
        """Whether statements may give a variable another value; what a pointer points to is none of it."""
        changed = names_assigned(stmts) | given_by_reference(stmts, self.target.kernel.by_reference)
        return s.name in (changed if "*" in s.type and not s.dims else changed | names_changed(stmts))

    def _before_end(self, rest: list[Stmt]) -> Iterator[Stmt]:
        """The statements up to where the block meets, and a few more at most."""
        for s in rest:
            yield s
            if not (isinstance(s, Declare) and s.qualifiers) and cooperate_in(self.target, (s,)):
                return

    def _is_of_points(self, s: Stmt, rest: list[Stmt]) -> bool:
        """Put a statement to those of a point, if the block does not meet in it."""
        if isinstance(s, Declare) and (s.init is not None or s.qualifiers) and self._is_for_all(s, rest):
            self.lead.append(s)
            return True
        before = (list(self.points), dict(self.own), list(self.gathered), dict(self.counted))
        adds = self._takes_counted(s)
        made = self._with_own_elements((self._with_gathered(s),)) if adds else None
        if made is None or self._shared_in(made) - self._of_all or cooperate_in(self.target, made):
            self.points, self.own, self.gathered, self.counted = before
            return False
        if contains_return(made):
            self.ends_early = True
        self.points += made
        return True

    def _shared_in(self, stmts: Block) -> frozenset[str]:
        """The names of the block's memory in statements."""
        return frozenset(n for n in names_mentioned(stmts) if self.values.get(n, _NONE).kind == "shared")

    @property
    def _of_all(self) -> frozenset[str]:
        """Shared memory that points may use: what they read alone, and what they add to."""
        return self.tables | frozenset(self.counted)

    def _takes_counted(self, s: Stmt) -> bool:
        """Find the shared memory that a statement adds to by one atomic function, without asking what it has; says
        whether it does nothing else to what earlier ones add to."""
        for name in self._shared_in((s,)) - self.tables:
            added = [
                (e.callee.text, sum(isinstance(x, Name) and x.text == name for x in walk_expr(e.args[0])))
                for t in walk_stmts((s,))
                if isinstance(t, ExprStmt) and isinstance(e := t.expr, Call) and isinstance(e.callee, Name)
                and e.callee.text in ATOMICS and e.callee.text not in self.target.functions.own and len(e.args) == 2
                and base_name(e.args[0]) == name
            ]  # fmt: skip
            by = {function for function, _ in added} | {*filter(None, [self.counted.get(name)])}
            mentions = sum(isinstance(e, Name) and e.text == name for e in walk_exprs((s,)))
            if (
                len(by) == 1
                and mentions == sum(n for _, n in added) == len(added)
                and self.values[name].type in FOLDED
                and self._may_fold(next(iter(by)), self.values[name].type)
            ):
                self.counted[name] = next(iter(by))
            elif name in self.counted:
                return False
        return True

    def _take_idle_declarations(self, rest: list[Stmt]) -> None:
        """Variables without a value that points do not use, which the fold does, go in front."""
        for s in [s for s in self.points if isinstance(s, Declare) and s.init is None]:
            others = [t for t in self.points if t is not s]
            if s.name not in names_mentioned(others) and s.name in names_mentioned(rest):
                self.points.remove(s)
                self.lead.append(s)
                self.commutes.is_fixed((s,), self.values)

    def _set_apart(self) -> None:
        """Give variables of points that the fold sets anew, before it reads them, names of their own there."""
        for s in [s for s in self.points if isinstance(s, Declare) and not s.dims]:
            at = next((n for n, t in enumerate(self.end) if s.name in names_mentioned((t,))), None)
            if at is None or not _sets_first(self.end[at], s.name):
                continue
            name = self.fresh(s.name)
            renamed: dict[str, Expr] = {s.name: Name(name)}
            self.end[at:] = [Declare(s.type, name), *substitute(tuple(self.end[at:]), renamed)]

    # ------------------------------------------------------------ elements of a thread's own

    def _with_own_elements(self, made: Block) -> Block | None:
        """Statements in which elements of shared arrays are variables, if each thread has one of its own; None where
        others may have to do with them."""
        shared = self._shared_in(made) - self._of_all
        if not shared:
            return made
        threads = Threads.of(self.target)
        names: dict[Expr, str] = {place: name for name, (place, _) in self.own.items()}
        new: dict[str, tuple[Index, str]] = {}
        for e in walk_exprs(made):
            if isinstance(e, Index) and isinstance(e.base, Name) and e.base.text in shared and e not in names:
                others = [place for place, _ in (*self.own.values(), *new.values())]
                type_ = self.values[e.base.text].type
                if threads is None or type_ not in FOLDED or not _apart(e, others, threads):
                    return None
                names[e] = self.fresh(f"own_{e.base.text}")
                new[names[e]] = (e, type_)
        if not all(any(_sets(t, place) for t in made[:1]) for place, _ in new.values()):
            return None  # what it was before a point would be what the point before left
        plain = rewrite(made, lambda e: Name(names[e]) if e in names else None)
        if self._shared_in(plain) - self._of_all:
            return None
        for name, (_, type_) in new.items():
            first = plain[0]
            if isinstance(first, Assign) and first.op == "=" and first.target == Name(name):
                plain = (Declare(type_, name, first.value), *plain[1:])
            else:
                self.points.append(Declare(type_, name))
        self.own |= new
        return plain

    # ------------------------------------------------------------ atomics of points

    def _with_gathered(self, s: Stmt) -> Stmt:
        """A statement whose atomics on a fixed address are folded into a variable."""
        inner = frozenset(variables((s,)))
        made = map_stmts((s,), lambda t: self._gather(t, inner))
        return made[0] if len(made) == 1 else Scope(made)

    def _gather(self, s: Stmt, inner: frozenset[str]) -> Stmt | Block:
        match s:
            case ExprStmt(Call(Name(name), (address, value))) if (
                name in ATOMICS and name not in self.target.functions.own
            ):
                place = self._fixed_address(address)
                if (
                    place is None
                    or names_in(address) & inner
                    or place.type not in FOLDED
                    or not self._may_fold(name, place.type)
                ):
                    return s
                same = (g for g in self.gathered if (g.name, g.address) == (name, address))
                one = next(same, None)
                if one is None:
                    memory = place.memory.split(":")[-1]
                    total = self.fresh(f"{memory}_own")
                    own = names_in(address) - {p.name for p in self.target.kernel.params}
                    told = self.fresh(f"{memory}_any") if own else ""
                    one = Gathered(name, address, total, place.type, told)
                    self.gathered.append(one)
                plain = value if integer(value) is not None else Cast(one.type, value, "static_cast")
                return one.more(plain)
        return s

    def _fixed_address(self, address: Expr) -> Value | None:
        if names_in(address) & set(variables(self.points)):
            return None
        try:
            found = self.commutes.value(address, self.values.copied())
        except UnknownError:
            return None
        return found if found.is_address else None

    def _may_fold(self, name: str, type_: str) -> bool:
        return not (self.target.exact and name in ("atomicAdd", "atomicSub") and type_ in ("float", "double"))

    # ------------------------------------------------------------ what is handed on

    def take_arguments(self) -> None:
        """Make variables of points of what functions of the fold are called with: ``sum(v * v)``."""
        own = frozenset(variables(self.points))
        for at, s in enumerate(self.end):
            if not isinstance(s, Declare | Assign | ExprStmt) or not names_mentioned((s,)) & (own | _IDS):
                continue
            self.end[at] = with_exprs(s, partial(self._with_variables, own, names_changed(tuple(self.end[:at]))))

    def _with_variables(self, own: frozenset[str], changed: frozenset[str], e: Expr) -> Expr:
        function = called(e, self.target) if isinstance(e, Call) else None
        if not isinstance(e, Call) or function is None or len(function.form.params) != len(e.args):
            return e
        args: list[Expr] = []
        for arg, param in zip(e.args, function.form.params, strict=True):
            type_ = self.commutes.plain(param.type)
            named = names_in(arg)
            plain = isinstance(arg, Name) or not named & (own | _IDS) or bool(named & changed)
            plain = plain or bool(self._shared_in((ExprStmt(arg),)))
            if plain or type_ not in FOLDED or param.is_pointer or cooperate_in(self.target, (ExprStmt(arg),)):
                args.append(arg)
                continue
            name = self.fresh(f"{param.name}_own" if param.name in self.taken else param.name)
            self.points.append(Declare(type_, name, arg))
            args.append(Name(name))
        return replace(e, args=tuple(args))


def _sets_first(s: Stmt, name: str) -> bool:
    """Whether a statement sets a variable before anything else is done with it, at once or first thing in braces."""
    match s:
        case Assign(Name(own), "=", value):
            return own == name and name not in names_in(value)
        case Scope(body):
            return bool(body) and _sets_first(body[0], name)
    return False


def _apart(place: Index, others: list[Index], threads: Threads) -> bool:
    """Whether each thread has an element of its own there, and none of the others."""
    known = shared_arrays(threads)
    found = _bytes_of(place, known, threads)
    if found is None or np.unique(found[1]).size != found[1].size:
        return False
    for other in others:
        theirs = _bytes_of(other, known, threads)
        if theirs is None or (theirs[0] == found[0] and np.intersect1d(theirs[1], found[1]).size):
            return False
    return True


def _bytes_of(place: Index, known: Mapping[str, Shared], threads: Threads) -> tuple[str, Values] | None:
    """The array that an element lies in, and the bytes of all threads' there."""
    one = known.get(place.base.text) if isinstance(place.base, Name) else None
    values = threads.values(place.index, {})
    if one is None or values is None:
        return None
    return one.root, np.add.outer(one.offset + values * one.bytes, np.arange(one.bytes)).ravel()


def _sets(s: Stmt, place: Expr) -> bool:
    """Whether a statement sets an element before anything reads it."""
    match s:
        case Assign(target, "=", value):
            return target == place and not any(e == place for e in walk_expr(value))
        case If(test, then, orelse):
            asked = any(e == place for e in walk_expr(test))
            return not asked and bool(then and orelse) and _sets(then[0], place) and _sets(orelse[0], place)
    return False


def _is_only_read(name: str, stmts: Block) -> bool:
    """Whether nothing but elements of an array is mentioned, and none is written."""
    mentions = sum(isinstance(e, Name) and e.text == name for e in walk_exprs(stmts))
    elements = sum(isinstance(e, Index) and e.base == Name(name) for e in walk_exprs(stmts))
    pointed = any(isinstance(e, Unary) and e.op == "&" and base_name(e) == name for e in walk_exprs(stmts))
    return mentions == elements and not pointed and name not in names_changed(stmts)


_NONE = Value("unset")
_IDS = frozenset(["blockIdx"])


def is_positive(name: str, body: Block, seen: frozenset[str] = frozenset()) -> bool:
    """Whether all that a variable is set to is plainly no less than 0."""
    given: list[Expr] = []
    for s in walk_stmts(body):
        match s:
            case Declare(name=own, init=init) if own == name and init is not None:
                given.append(init)
            case Assign(Name(own), op, value) if own == name:
                given.append(value if op == "=" else Binary(op[:-1], Name(name), value))
    pointed = any(isinstance(e, Unary) and e.op == "&" and e.operand == Name(name) for e in walk_exprs(body))
    return bool(given) and not pointed and all(_positive(e, body, seen | {name}) for e in given)


def _positive(e: Expr, body: Block, seen: frozenset[str]) -> bool:
    def also(x: Expr) -> bool:
        return _positive(x, body, seen)

    match e:
        case Name(text):
            return text in seen or is_positive(text, body, seen)
        case Call(Name("fabsf" | "fabs" | "sqrtf" | "sqrt" | "expf" | "exp")):
            return True
        case Call(Name("fmaxf" | "fmax" | "max"), (left, right)):
            return also(left) or also(right)
        case Call(Name("fminf" | "fmin" | "min"), (left, right)) | Binary("+" | "/", left, right):
            return also(left) and also(right)
        case Binary("*", left, right):
            square = left == right and not any(isinstance(x, Call) for x in walk_expr(left))
            return square or (also(left) and also(right))
        case Cast("float" | "double", operand):
            return also(operand)
    whole = integer(e)
    return whole >= 0 if whole is not None else isinstance(e, Literal) and e.text[:1].isdigit()
