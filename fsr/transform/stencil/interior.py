"""split-interior: points away from the edges get a way of their own, without clamps, wrapped indices and tests.

Most threads of a stencil are away from all edges, and yet ask for each neighbour whether it is there. One test in front
tells them apart; both ways are the user's own code, one with the tests decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fsr.analysis.calls import COOPERATES
from fsr.analysis.functions import thread_aware
from fsr.analysis.interior import Interior, interior
from fsr.analysis.returned import written_out
from fsr.analysis.types import integer_bytes, resolved, type_of
from fsr.analysis.versions import told_apart
from fsr.records import Candidate
from fsr.source.form import (
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
    conjunction,
    number,
)
from fsr.source.mapping import map_stmts
from fsr.source.walk import Block, base_name, blocks_of, contains_opaque, exprs_of, identifiers, walk_expr
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

GAIN = 1.2
_COSTS = {"<": 1, "<=": 1, ">": 1, ">=": 1, "==": 1, "!=": 1, "%": 10}
_ROUNDS = 4  # of deciding: a clamp, one of the other side, a choice, and what follows
_TURNS = 4  # of a loop, at the least
_TYPES = ("int", "float", "double")  # each takes in the ones before
_TRUE, _FALSE = Literal("true"), Literal("false")
_TESTS = frozenset(["<", "<=", ">", ">=", "==", "!=", "&&", "||"])


class SplitInterior:
    """``if (x >= 2 && x + 2 < n) { without tests } else { as it was }``."""

    name = "split-interior"
    aims_at = frozenset({"instructions", "compute", "latency", "occupancy"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a kernel that asks where its edges are, in several places."""
        for target in targets(subject):
            again = any(done.startswith(f"{self.name}@{target.region}") for done in subject.candidate.actions)
            if not again and _parted(target) is not None:
                yield Move(self.name, target.region, (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with both ways."""
        target = target_of(subject, move)
        found = _parted(target)
        assert found is not None
        return rewritten(target, move, found)


def _parted(target: Target) -> KernelForm | None:
    """The kernel with a way for its interior; None where it has none, or its threads work together."""
    kernel = target.kernel
    plain = written_out(kernel, target.source)
    used = identifiers(plain.body)
    if contains_opaque(kernel.body) or any(COOPERATES.search(n) for n in used):
        return None
    if used & (thread_aware(target.source) - {kernel.name}) or contains_opaque(plain.body):
        return None
    known = interior(replace(plain, body=told_apart(plain.body, target.names)), target.functions, target.constants)
    if not known.edges:
        return None
    at = _place(known)
    inner = decided(known, at, target.aliases)
    tests = edge_tests(known)
    test = conjunction(tests)
    if test is None or _asks(plain.body[at:]) - _asks(inner) <= len(tests):
        return None
    return replace(kernel, body=(*kernel.body[:at], If(test, inner, kernel.body[at:])))


def decided(known: Interior, at: int, aliases: Mapping[str, str]) -> Block:
    """The statements from a place on as they are away from the edges: what is decided of one variable may decide what
    is asked of the next."""
    lead, body = known.kernel.body[:at], known.kernel.body[at:]
    for _ in range(_ROUNDS):
        inner = _Inside(known, aliases).block(body)
        if inner == body:
            break
        known, body = known.with_body((*lead, *inner)), inner
    return body


def _asks(body: Block) -> int:
    """About how many instructions the statements spend on asking: comparisons, choices, clamps and remainders."""
    own = [e for s in body for x in exprs_of(s) for e in walk_expr(x)]
    count = sum(_COSTS.get(e.op, 0) for e in own if isinstance(e, Binary))
    count += sum(isinstance(e, Ternary) for e in own)
    count += sum(2 for e in own if isinstance(e, Call) and e.callee in (Name("min"), Name("max")))
    inside = [(isinstance(s, For | While), block) for s in body for block in blocks_of(s)]
    return count + sum(_asks(block) * (_TURNS if loop else 1) for loop, block in inside)


def _place(known: Interior) -> int:
    """How many statements stand in front of the test: the ids, guards, declarations in which nothing is decided."""
    body = known.kernel.body
    last = max(n for n, s in enumerate(body) if isinstance(s, Declare) and s.name in known.edges) + 1
    inside = _Inside(known, {})
    while last < len(body):
        s = body[last]
        guard = isinstance(s, If) and not s.orelse and all(isinstance(x, Return | Comment) for x in s.then)
        if not (guard or isinstance(s, Comment) or (isinstance(s, Declare) and inside.block((s,)) == (s,))):
            break
        last += 1
    return last


def edge_tests(known: Interior) -> list[Expr]:
    """Whether ids are away from their edges."""
    found = list[Expr]()
    for name, e in known.edges.items():
        if e.low:
            found.append(Binary(">=", Name(name), number(e.low)))
        if e.extent:
            found.append(Binary("<", Binary("+", Name(name), number(e.high)) if e.high else Name(name), Name(e.extent)))
    return found


class _Inside:
    """Statements as they are away from the edges."""

    def __init__(self, known: Interior, aliases: Mapping[str, str]) -> None:
        self.known, self.aliases = known, aliases

    def block(self, body: Block) -> Block:
        """The statements with what is decided left out."""
        return map_stmts(body, self._statement, self._expression)

    def _statement(self, s: Stmt) -> Stmt | Block:
        if isinstance(s, If) and s.test in (_TRUE, _FALSE):
            side = s.then if s.test == _TRUE else s.orelse
            return (Scope(side),) if any(isinstance(x, Declare) for x in side) else side
        return s

    def _expression(self, e: Expr) -> Expr:
        """An expression whose operands are as they are there already."""
        match e:
            case Binary(op="&&" | "||"):
                return _joined(e)
            case Binary(op="%"):
                return self.known.wrapped(e) or e
            case Binary():
                outcome = self.known.decided(e)
                return e if outcome is None else _TRUE if outcome else _FALSE
            case Unary("!", operand) if operand in (_TRUE, _FALSE):
                return _FALSE if operand == _TRUE else _TRUE
            case Ternary(test, yes, no) if yes == no and _is_pure(test):
                return yes
            case Ternary(test, yes, no) if test in (_TRUE, _FALSE):
                return self._chosen(*(yes, no) if test == _TRUE else (no, yes)) or e
            case Call():
                return self.known.clamped(e) or e
        return e

    def _chosen(self, chosen: Expr, other: Expr) -> Expr | None:
        """What is chosen, in the type of a choice; None where that is not told, and for a whole number beside a
        floating one unless it is an element."""
        types = self.known.known.types
        one, two = type_of(chosen, types, self.aliases), type_of(other, types, self.aliases)
        if one is None or two is None:
            return chosen if one is two else None
        if _TYPES.index(one) < _TYPES.index(two):
            return Cast(two, chosen) if isinstance(chosen, Index) else None
        if not self.known.keeps_sign(chosen, other):
            return None
        return Cast("int", chosen) if self._is_small(chosen) and not self._is_small(other) else chosen

    def _is_small(self, e: Expr) -> bool:
        """Whether an expression is of a type below int, which a choice beside an int is not."""
        type_ = resolved(self.known.known.types.get(base_name(e) or "", ""), self.aliases)
        return isinstance(e, Index | Name) and (type_ == "bool" or (integer_bytes(type_) or 4) < 4)


def _joined(e: Binary) -> Expr:
    decides = _FALSE if e.op == "&&" else _TRUE
    other = _TRUE if e.op == "&&" else _FALSE
    if e.left == decides or (e.right == decides and _is_pure(e.left)):
        return decides
    if e.left == other and _is_test(e.right):
        return e.right
    return e.left if e.right == other and _is_test(e.left) else e


def _is_test(e: Expr) -> bool:
    return e in (_TRUE, _FALSE) or (isinstance(e, Binary) and e.op in _TESTS) or (isinstance(e, Unary) and e.op == "!")


def _is_pure(e: Expr) -> bool:
    """Whether an expression only computes: it may be left out."""
    return not any(isinstance(x, Call) for x in walk_expr(e))
