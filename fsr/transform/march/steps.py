"""Variables of a march that the turn's number tells: what they begin with and a step a turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.types import is_integer
from fsr.source.form import Assign, Binary, Cast, Declare, Expr, For, Name, Stmt, Unary
from fsr.source.walk import Block, names_in, names_written, walk_stmts


@dataclass(frozen=True)
class Step:
    """``at``: which statement of the loop's body; ``op``: += or -=; ``by``: the same in all turns."""

    name: str
    at: int
    op: str
    by: Expr

    @property
    def signed(self) -> Expr:
        """What is added."""
        return self.by if self.op == "+=" else Unary("-", self.by)


def steps_of(loop: For, types: Mapping[str, str], same: Callable[[Expr], bool]) -> tuple[Step, ...]:
    """The steps of integers and pointers that a loop's own statements move by a number, and nothing else sets."""
    found = [step for at, s in enumerate(loop.body) if (step := _step(at, s)) is not None]
    written = [s.target.text for s in walk_stmts(loop.body) if isinstance(s, Assign) and isinstance(s.target, Name)]
    written += [s.var for s in walk_stmts(loop.body) if isinstance(s, For)]

    def moved(step: Step) -> bool:
        mine = [other for other in found if other.name == step.name]
        type_ = types.get(step.name, "")
        if not ((is_integer(type_) and "volatile" not in type_) or type_.count("*") == 1):
            return False
        return written.count(step.name) == len(mine) and all(same(other.by) for other in mine)

    return tuple(step for step in found if moved(step))


def forwarded(body: Block, types: Mapping[str, str]) -> Block:
    """The statements with ``v = t`` as ``v = e`` where t, of the same type, has the value of an earlier ``t = e``
    still: many name the next turn's place at the beginning of this one (``next = pos - slice; ... pos = next;``)."""
    known, found = dict[str, Expr](), list[Stmt]()
    for s in body:
        match s:
            case Assign(Name(name), "=", Name(text)) if text in known and types.get(name) == types.get(text):
                s = replace(s, value=known[text])
        written = names_written((s,))
        known = {t: e for t, e in known.items() if t not in written and not names_in(e) & written}
        match s:
            case Declare(name=text, init=Binary("+" | "-") as value) | Assign(
                Name(text), "=", Binary("+" | "-") as value
            ) if text not in names_in(value):
                known[text] = value
        found.append(s)
    return tuple(found)


def _step(at: int, s: Stmt) -> Step | None:
    match s:
        case Assign(Name(name), "+=" | "-=" as op, by):
            return None if name in names_in(by) else Step(name, at, op, by)
        case Assign(Name(name), "=", Binary("+" | "-" as op, Name(text), by)) if text == name:
            return None if name in names_in(by) else Step(name, at, f"{op}=", by)
        case Assign(Name(name), "=", Binary("+", by, Name(text))) if text == name:
            return None if name in names_in(by) else Step(name, at, "+=", by)
    return None


def wide(e: Expr) -> Expr:
    """The expression's value in 64 bits, so that many times as much is right for a variable of any width."""
    return Cast("long long", e, "c")
