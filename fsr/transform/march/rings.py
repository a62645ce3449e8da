"""Rings: local arrays of which each turn of a march sets the next element, round and round (``last[t % 4] = x``)."""

from __future__ import annotations

from math import gcd

from fsr.analysis.polynomial import Poly
from fsr.source.form import Assign, Binary, Declare, Expr, Index, Name
from fsr.source.walk import Block, base_name, walk_stmts
from fsr.transform.march.scene import Scene
from fsr.transform.march.steps import Step
from fsr.transform.target import Target


def rings(target: Target, scene: Scene, steps: tuple[Step, ...]) -> dict[str, int]:
    """The rings of a loop's body, each with its extent. Each is set in one place, in every turn, at the remainder of a
    number that moves by an amount without a factor in common with the extent: as many turns set every element."""
    loop, found = scene.loop, dict[str, int]()
    moves = {loop.var: target.poly(loop.step).value or 0}
    for step in steps:
        moves[step.name] = moves.get(step.name, 0) + (target.poly(step.signed).value or 0)
    for s in loop.body:
        match s:
            case Assign(Index(Name(name), index), "=") if _set_once(loop.body, name):
                extent = _extent(target, scene, name)
                by = None if extent is None else _moved(target, scene, index, extent, moves)
                if extent is not None and by and gcd(by, extent) == 1:
                    found[name] = extent
    return found


def _set_once(body: Block, name: str) -> bool:
    return sum(isinstance(s, Assign) and base_name(s.target) == name for s in walk_stmts(body)) == 1


def _extent(target: Target, scene: Scene, name: str) -> int | None:
    own = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and s.name == name]
    return scene.value(own[0].dims[0], {}) if len(own) == 1 and len(own[0].dims) == 1 else None


def _moved(target: Target, scene: Scene, index: Expr, extent: int, moves: dict[str, int]) -> int | None:
    """By how much the number moves a turn whose remainder the index is; None where it is none."""
    match index:
        case Binary("%", number, divisor) if scene.value(divisor, {}) == extent:
            pass
        case Binary("&", number, mask) if extent & (extent - 1) == 0 and scene.value(mask, {}) == extent - 1:
            pass
        case _:
            return None
    place: Poly = target.poly(number)
    if isinstance(index, Binary) and index.op == "%" and any(count < 0 for _, count in place.terms):
        return None  # an unsigned number might go round
    by = 0
    for name, amount in moves.items():
        factor = place.coefficient(name)
        if factor is None or factor.value is None:
            return None
        by += factor.value * amount
        if factor.value and not amount:
            return None
    return None if place.depends_on(scene.changing - set(moves)) else by
