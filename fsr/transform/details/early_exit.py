"""early-exit: a loop that only finds out whether something is so ends when it is known.

What is left of such a loop changes nothing: its one effect is to give a variable the value that it has by then
(``if (a[i] != b[i]) same = 0;``), or to keep one at zero (``same &= a[i] == b[i]``). So does a loop in which something
runs out (:mod:`fsr.transform.details.running_out`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from fsr.analysis.types import is_integer
from fsr.records import Candidate
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Jump,
    Literal,
    Name,
    Return,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.mapping import replace_stmt
from fsr.source.walk import (
    blocks_of,
    contains_opaque,
    integer,
    loop_regions,
    names_in,
    nodes,
    walk_stmts,
    without_comments,
)
from fsr.transform.details.running_out import with_end
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, part_of, region_in, target_of, targets

_GAIN = 1.5
_VALUES = ("true", "false")


@dataclass(frozen=True, slots=True)
class EarlyExit:
    """The action."""

    name: str = "early-exit"
    aims_at: frozenset[str] = frozenset(["instructions", "latency", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The outermost loops that only find something out, and do not end with it yet."""
        for target in targets(subject):
            inside: list[Stmt] = []
            for region, loop in loop_regions(target.kernel).items():
                if loop not in inside and _ending(target, loop) is not None:
                    inside += [s for s in walk_stmts(loop.body) if isinstance(s, For)]
                    yield Move(self.name, region_in(target, region), (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose loop ends early."""
        target = target_of(subject, move)
        loop = loop_regions(target.kernel)[part_of(move)]
        ending = _ending(target, loop)
        assert ending is not None
        body = replace_stmt(target.kernel.body, loop, (replace(loop, body=ending),))
        return rewritten(target, move, replace(target.kernel, body=body))


def _ending(target: Target, loop: For) -> tuple[Stmt, ...] | None:
    """The loop's body with what ends it; None where it has other effects, or ends already."""
    found = _known(target, loop)
    return found if found is not None else with_end(target, loop)


def _known(target: Target, loop: For) -> tuple[Stmt, ...] | None:
    """The same of a loop that only finds something out."""
    if loop.type is None or contains_opaque(loop.body) or not _only_looks(target, loop.body):
        return None
    own = {s.name for s in walk_stmts(loop.body) if isinstance(s, Declare)}
    effects = [s for s in walk_stmts(loop.body) if isinstance(s, Assign) and not _is_own(s.target, own)]
    flag = _flag(target, effects)
    if flag is None or any(_stepped(s, own) for s in walk_stmts(loop.body)):
        return None
    name, known = flag
    if name in names_in(loop.start) | names_in(loop.bound) | names_in(loop.step) or any(_jumps(loop.body, effects)):
        return None
    return _with_ends(loop.body, effects, If(known, (Jump("break"),)))


def _only_looks(target: Target, body: tuple[Stmt, ...]) -> bool:
    """Whether nothing is called that does more than compute, and nothing but variables is assigned to."""
    for node in nodes(body):
        match node:
            case Call(callee=Name(text=text)) if not target.functions.only_computes(text):
                return False
            case Call(callee=callee) if not isinstance(callee, Name):
                return False
            case Assign(target=place) if not isinstance(place, Name):
                return False
            case Return() | Unary(op="&") | While():
                return False
    return True


def _is_own(place: Expr, own: set[str]) -> bool:
    return isinstance(place, Name) and place.text in own


def _stepped(s: Stmt, own: set[str]) -> bool:
    """Whether an inner loop steps a variable that outlives the loop."""
    return isinstance(s, For) and s.type is None and s.var not in own


def _flag(target: Target, effects: list[Assign]) -> tuple[str, Expr] | None:
    """The variable that is all that the effects tell, and the test whether they have nothing to tell any more."""
    names = {s.target.text for s in effects if isinstance(s.target, Name)}
    declared = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and s.name in names]
    if len(names) != 1 or len(declared) != 1 or declared[0].dims or set(declared[0].qualifiers) - {"register"}:
        return None
    type_ = declared[0].type.removeprefix("const ").strip()
    if type_ != "bool" and not is_integer(type_):
        return None
    (name,) = names
    if all(s.op == "&=" for s in effects):
        return name, Binary("==", Name(name), Literal("0"))
    values = {s.value for s in effects}
    if any(s.op != "=" for s in effects) or len(values) != 1:
        return None
    (value,) = values
    constant = integer(value) is not None or (isinstance(value, Literal | Name) and value.text in _VALUES)
    return (name, Binary("==", Name(name), value)) if constant else None


def _jumps(body: tuple[Stmt, ...], effects: list[Assign]) -> Iterator[bool]:
    """For each block, whether an effect stands before a jump, which may be the end already."""
    for block in (body, *(b for s in walk_stmts(body) for b in blocks_of(s))):
        plain = without_comments(block)
        yield any(a in effects and _ends(b) for a, b in pairwise(plain))


def _ends(s: Stmt) -> bool:
    return isinstance(s, Jump) or (isinstance(s, If) and any(isinstance(x, Jump) for x in s.then))


def _with_ends(body: tuple[Stmt, ...], effects: list[Assign], end: If) -> tuple[Stmt, ...]:
    """The statements with the end behind what may have told all: the effects, and loops that hold them."""
    found = list[Stmt]()
    for s in body:
        match s:
            case Assign() if s in effects:
                found += [s, Jump("break") if s.op == "=" else end]
            case If():
                yes, no = (_with_ends(b, effects, end) for b in (s.then, s.orelse))
                found.append(replace(s, then=yes, orelse=no))
            case Scope():
                found.append(replace(s, body=_with_ends(s.body, effects, end)))
            case For() if any(x in effects for x in walk_stmts(s.body)):
                found += [replace(s, body=_with_ends(s.body, effects, end)), end]
            case _:
                found.append(s)
    return tuple(found)
