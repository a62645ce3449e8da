"""Several threads' statements in one thread, statement by statement (unroll-and-jam over threads).

What the threads have in common is done once. Each run of statements that depend on the thread is one loop over the
threads, unrolled; variables that such a run hands on to what follows become arrays, an element a thread, which the
compiler keeps in registers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.analysis.common_values import CommonValues
from fsr.analysis.effects import Unclear
from fsr.source.emit import emit_expr
from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Scope,
    Stmt,
    Unary,
    While,
    number,
)  # fmt: skip
from fsr.source.mapping import rewrite, substitute, with_blocks, with_exprs
from fsr.source.walk import Block, fresh, names_mentioned, names_written
from fsr.transform.jam.terms import Types, hoisted

UNROLL = ("#pragma unroll",)
ZEROS = re.compile(r"\{[\s,{}0.f]*\}")
"""An initialiser that is zeros alone."""
Places = Mapping[str, Expr]
"""What stands for each variable that is an element a thread."""


@dataclass(frozen=True)
class Threads:
    """``factor`` threads that are to be one. ``told``: the statements of the thread ``u``, with that name in place of
    what tells threads apart; ``side``: the statements that a condition guards which threads that all come there should
    do together; ``rounds``: whether they should go through a loop together for as long as all do; ``types``: of
    variables; ``words``: registers that a variable takes."""

    common: CommonValues
    factor: int
    told: Callable[[Block, str], Block]
    side: Callable[[If], Block | None]
    rounds: Callable[[For | While], bool]
    types: Types
    words: Callable[[Declare], int]


class Jam:
    """Makes the statements of several threads. ``taken``: names in use; ``words``: registers that became arrays, of a
    thread."""

    def __init__(self, threads: Threads, taken: frozenset[str]) -> None:
        self._threads, self._common, self._factor = threads, threads.common, threads.factor
        self._taken = set(taken)
        self.u = self.name("u")
        self._count = self.name("together")
        self.words = 0

    def name(self, wanted: str) -> str:
        """A name that nothing else has."""
        found = fresh(wanted, self._taken)
        self._taken.add(found)
        return found

    def whole(self, chain: Sequence[tuple[Block, Expr]], core: Block, body: Block, exists: Expr | None) -> Block:
        """The kernel's statements. ``chain``: what stands before each of the tests around ``core``, which is worth
        doing together; ``body``: all of it, as it is; ``exists``: whether there is a thread ``u``."""
        before = tuple(s for lead, _ in chain for s in lead)
        if not chain and exists is None:
            return self.jam(core, {})
        tests: Block = (Assign(Name(self._count), "+=", Literal("1")),)
        for lead, test in reversed(chain):
            tests = (*lead, If(test, tests))
        alone = self._threads.told(body, self.u)
        tests = self._threads.told(tests, self.u)
        if exists is not None:
            tests, alone = (If(exists, tests),), (If(exists, alone),)
        return self._versions((self._each(tests),), self.jam((*before, *core), {}), replace(
            self._each(alone), pragmas=("#pragma unroll 1",)))  # fmt: skip

    def _versions(self, counting: Block, jammed: Block, single: Stmt) -> Block:
        start = Declare("int", self._count, Literal("0"))
        return (start, *counting, If(Binary("==", Name(self._count), number(self._factor)), jammed, (single,)))

    # ------------------------------------------------------------ statements

    def jam(self, stmts: Block, places: Places) -> Block:
        """The statements of all threads, which all come here."""
        out: list[Stmt] = []
        run: list[Stmt] = []
        places = dict(places)

        def flush(rest: Block) -> None:
            said = len(run)
            while said and isinstance(run[said - 1], Comment):  # which are about what follows
                said -= 1
            if said:
                out.extend(self._run(tuple(run[:said]), places, names_mentioned(rest)))
            out.extend(run[said:])
            run.clear()

        for at, s in enumerate(stmts):
            if self._splits(s):
                flush(stmts[at:])
                out.extend(self._split(s, places))
            elif isinstance(s, Comment) or not self._common.once(s):
                run.append(s)
            else:
                if not _moves_before(s, run):
                    flush(stmts[at:])
                out.append(s)
                if isinstance(s, Declare):
                    places.pop(s.name, None)
        flush(())
        return tuple(out)

    def _splits(self, s: Stmt) -> bool:
        """Whether the statement's parts are jammed, not the statement done for one thread after the other."""
        if self._common.once(s):
            return False
        match s:
            case For() | While():
                return self._common.together(s) or self._threads.rounds(s)
            case If(test):
                return self._common(test) or self._threads.side(s) is not None
            case Scope():
                return True
        return False

    def _split(self, s: Stmt, places: Places) -> Block:
        if isinstance(s, If) and not self._common(s.test):
            side = self._threads.side(s)
            assert side is not None
            all_come = s.test if side is s.then else Unary("!", s.test)
            step = If(all_come, (Assign(Name(self._count), "+=", Literal("1")),))
            counting, single = (self._each(self._element((one,), places)) for one in (step, s))
            return (Scope(self._versions((counting,), self.jam(side, places), single)),)
        if isinstance(s, For | While) and not self._common.together(s):
            found = self._rounds(s, dict(places))
            return (Scope(found),) if isinstance(s, For) and s.type is not None else found
        own = {n: e for n, e in places.items() if not (isinstance(s, For) and s.type is not None and n == s.var)}
        return (with_blocks(s, lambda block: self.jam(block, own)),)

    def _rounds(self, s: For | While, places: dict[str, Expr]) -> Block:
        """A loop that threads leave at turns of their own: together while none has, then one after the other."""
        start: Block = ()
        test, body = (s.test, s.body) if isinstance(s, While) else (Literal("true"), s.body)
        if isinstance(s, For):
            first = Assign(Name(s.var), "=", s.start) if s.type is None else Declare(s.type, s.var, s.start)
            start = self._run((first,), places, frozenset([s.var]))
            test, body = Binary(s.relation, Name(s.var), s.bound), (*body, Assign(Name(s.var), "+=", s.step))
        come = If(test, (Assign(Name(self._count), "+=", Literal("1")),))
        turn = (
            Declare("int", self._count, Literal("0")),
            self._each(self._element((come,), places)),
            If(Binary("!=", Name(self._count), number(self._factor)), (Jump("break"),)),
            *self.jam(body, places),
        )
        return (*start, While(Literal("true"), turn), self._each(self._element((While(test, body),), places)))

    def _each(self, body: Block) -> For:
        return For("int", self.u, Literal("0"), "<", number(self._factor), Literal("1"), body, UNROLL)

    # ------------------------------------------------------------ runs

    def _run(self, run: Block, places: dict[str, Expr], later: frozenset[str]) -> Block:
        """A run of statements for each thread; what ``later`` ones mention of its variables becomes arrays, and is
        added to ``places``."""
        arrays: list[Stmt] = []
        body: list[Stmt] = []
        own = dict[str, Expr]()  # values of variables that only these statements have
        for s in run:
            init = None
            if isinstance(s, Declare) and s.init is not None:
                one = self._element((Assign(Name("_"), "=", s.init),), places)[0]
                assert isinstance(one, Assign)
                init = one.value
            if not isinstance(s, Declare) or s.name not in later:
                body.extend(self._element((s,), places))
                if isinstance(s, Declare):
                    places.pop(s.name, None)
                    own |= {} if init is None else {s.name: substitute(init, own)}
                continue
            array, place, value = self._array(s, init, own)
            arrays.append(array)
            places[s.name] = place
            body += [] if value is None else [Assign(Index(Name(s.name), Name(self.u)), "=", value)]
        once, left = hoisted(tuple(body), self._common, self._threads.types, self.name)
        return (*arrays, *once, *((self._each(left),) if left else ()))

    def _array(self, s: Declare, init: Expr | None, own: Mapping[str, Expr]) -> tuple[Declare, Expr, Expr | None]:
        """The array in a variable's place, an element of it, and what each is set to, where it is not the array's own
        initial value. ``own``: values of variables that are not known where the array is declared."""
        if {"volatile", "static"} & {*s.qualifiers, *s.type.split()} or "thread_local" in s.qualifiers:
            raise Unclear
        self.words += self._threads.words(s)
        element: Expr = Index(Name(s.name), Name(self.u))
        type_, dims = assignable(s.type), (number(self._factor), *s.dims)
        if s.type.endswith("&"):
            if not isinstance(init, Index | Member | Unary | Name):
                raise Unclear  # it may be bound to a value that has no place
            return Declare(type_, s.name, None, dims), Unary("*", element), Unary("&", init)
        if "auto" in type_.split():
            if not isinstance(s.init, Binary) or init is None:
                raise Unclear
            type_ = f"decltype({emit_expr(self._first(substitute(init, own)))})"
        if isinstance(init, OpaqueExpr):
            if not ZEROS.fullmatch(init.text):
                raise Unclear
            return Declare(type_, s.name, OpaqueExpr("{}"), dims), element, None
        if s.dims and init is not None:
            raise Unclear
        return Declare(type_, s.name, None, dims), element, init

    def _first(self, e: Expr) -> Expr:
        return rewrite(e, lambda x: Literal("0") if x == Name(self.u) else None)

    def _element(self, stmts: Block, places: Places) -> Block:
        """The statements of the thread ``u``."""
        return self._threads.told(placed(stmts, dict(places)), self.u)


def placed(stmts: Block, places: dict[str, Expr]) -> Block:
    """The statements with elements for variables, but for those that statements of their own declare anew."""
    found: list[Stmt] = []

    def change(e: Expr) -> Expr | None:
        return places.get(e.text) if isinstance(e, Name) else None

    for s in stmts:
        inner = dict(places)
        if isinstance(s, For) and s.type is not None:
            inner.pop(s.var, None)
        new = with_exprs(s, lambda e: rewrite(e, change))
        found.append(with_blocks(new, lambda block, own=inner: placed(block, own)))  # type: ignore[misc]
        if isinstance(s, Declare):
            places.pop(s.name, None)
    return tuple(found)


def assignable(type_: str) -> str:
    """A type that a variable which is set later may have: ``float`` of ``const float``, ``const float *`` as it is. A
    pointer where it was a reference."""
    if type_.endswith("&"):
        return f"{type_[:-1].rstrip()} *"
    head, star, tail = type_.rpartition("*")
    rest = " ".join(w for w in tail.split() if w != "const")
    return f"{head}{star}{rest}"


def _moves_before(s: Stmt, run: Sequence[Stmt]) -> bool:
    """Whether a statement that is done once may be done before a run: it sets a variable that the run does not know.
    What it reads no statement of a run sets."""
    return isinstance(s, Declare | Assign) and not names_written((s,)) & names_mentioned(tuple(run)) and not (
        isinstance(s, Declare) and s.name in names_mentioned(tuple(run)))  # fmt: skip
