"""Between which values an expression lies, for all data that a contract allows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Op
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate

Range = tuple[float, float]
_ANY = (-math.inf, math.inf)
_KEPT = ("float32", "float64")  # casts of what is told within a factor anyway
_RISING: Mapping[str, Callable[[float], float]] = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt}


def largest_magnitude(e: Expr, contract: Contract, most: Callable[[str], float]) -> float:
    """The largest absolute value that an expression may have, but for rounding; infinite where nothing is known.
    ``most``: a size at its largest."""
    return max(map(abs, _range(e, contract, most)))


def _range(e: Expr, contract: Contract, most: Callable[[str], float]) -> Range:
    parts = [_range(x, contract, most) for x in _beneath(e)]
    if any(math.isinf(end) for part in parts for end in part):
        return _ANY
    match e:
        case Const(value, _):
            return float(value), float(value)
        case Load(buffer):
            return _given(buffer, contract)
        case Fold("max" | "min"):
            return parts[0]
        case Fold("sum", dims):
            ends = [end * math.prod(_most(x, most) for _, x in dims) for end in (*parts[0], 0.0)]
            return min(ends), max(ends)
        case Case() | Op("select"):
            return min(low for low, _ in parts), max(high for _, high in parts)
        case Op(name):
            return _of_operation(name, parts)
    return _ANY


def _beneath(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Fold():
            return (e.body,)
        case Case():
            return e.yes, e.no
        case Op("select"):
            return e.args[1:]
        case Op():
            return e.args
    return ()


def _of_operation(name: str, parts: list[Range]) -> Range:
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    match name:
        case "sum":
            return sum(lows), sum(highs)
        case "prod":
            ends = [math.prod(chosen) for chosen in itertools.product(*parts)]
            return min(ends), max(ends)
        case "neg":
            return -highs[0], -lows[0]
        case "max" | "min":
            return min(lows), max(highs)
        case "exp" | "log" | "sqrt":
            return _rising(name, parts[0])
    return parts[0] if name in _KEPT else _ANY


def _rising(name: str, of: Range) -> Range:
    try:
        low, high = (_RISING[name](end) for end in of)
    except (ValueError, OverflowError):
        return _ANY
    return low, high


def _given(buffer: str, contract: Contract) -> Range:
    """Of elements of an argument with bounds that no size decides."""
    a = next((a for a in contract.args if a.name == buffer), None)
    if a is None or a.constraints.low is None or a.constraints.high is None:
        return _ANY
    try:
        low, high = (float(evaluate(end, {})) for end in (a.constraints.low, a.constraints.high))
    except ContractError:
        return _ANY
    return low, high


def _most(extent: Affine, most: Callable[[str], float]) -> float:
    return max(0.0, extent.constant + sum(k * most(n) for n, k in extent.terms if k > 0))
