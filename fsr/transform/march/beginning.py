"""What the integers of a kernel are where a loop begins, as polynomials of what never changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fsr.analysis.polynomial import Poly, symbol
from fsr.source.form import Assign, Comment, Declare, Expr, For, If, Name, Scope, Stmt
from fsr.source.walk import Block, integer, names_changed, names_written
from fsr.transform.target import Target

Values = dict[str, Poly | None]


def beginning(target: Target, levels: tuple[tuple[Block, int], ...]) -> Mapping[str, Poly | None]:
    """The values of the variables that change before a loop; None for what cannot be told. ``levels``: the statement
    lists around the loop, each with its place. How often a loop on the way goes round is a symbol of its own, where it
    is the same for all threads of a launch."""
    found: Values = {}
    numbers = iter(range(1000))
    for block, at in levels:
        for s in block[:at]:
            _after(target, s, found, numbers)
    return found


def _poly(target: Target, e: Expr, found: Values) -> Poly | None:
    value = target.poly(e)
    for name in sorted(value.names() & found.keys()):
        own, factor = found[name], value.coefficient(name)
        if own is None or factor is None:
            return None
        value = value.without(name) + factor * own
    return value


def _after(target: Target, s: Stmt, found: Values, numbers: Iterator[int]) -> None:
    """The values after a statement, in ``found``."""
    changed = target.known.changed
    match s:
        case Comment():
            return
        case Declare(name=name, init=init) if name in changed:
            found[name] = None if init is None else _poly(target, init, found)
        case Assign(Name(name), op, value):
            new, old = _poly(target, value, found), found.get(name)
            if op == "=":
                found[name] = new
            elif op in ("+=", "-=") and new is not None and old is not None:
                found[name] = old + new if op == "+=" else old - new
            else:
                found[name] = None
        case Scope(body):
            for inner in body:
                _after(target, inner, found, numbers)
        case For():
            _after_loop(target, s, found, numbers)
        case If():
            for name in names_changed((s,)):
                found[name] = None
        case _:
            for name in names_written((s,)):
                if name in changed:
                    found[name] = None


def _after_loop(target: Target, s: For, found: Values, numbers: Iterator[int]) -> None:
    """The values after a loop: a variable moved by the same amount each turn, is so many times further."""
    uniform = all(target.size_text(e) is not None for e in (s.start, s.bound, s.step)) and integer(s.step) is not None
    changed = names_changed((s,))
    turns = symbol(f"turns${next(numbers)}")
    new: Values = dict.fromkeys(changed)
    for inner in s.body if uniform else ():
        match inner:
            case Assign(Name(name), "+=" | "-=" as op, value):
                amount, old = _poly(target, value, found), found.get(name)
                once = sum(isinstance(x, Assign) and x.target == Name(name) for x in s.body) == 1
                deeper = name in names_changed([x for x in s.body if x is not inner])
                if amount is None or old is None or not once or deeper or amount.depends_on(changed):
                    continue
                new[name] = old + turns * amount if op == "+=" else old - turns * amount
    found.update(new)
