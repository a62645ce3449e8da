"""Between which values an expression lies, for all data that a contract allows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from fsr.computation.expression import Affine, Case, Const, Expr, Fold, Load, Number, Op
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
    if (whole := _whole(e)) != _ANY:
        return whole
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


# ---------------------------------------------------------------- whole numbers

_LEAST, _MOST = 2.0**-14, 65504.0  # of a float16 with all its digits
_DIGITS = {"float16": 11, "bfloat16": 8}  # binary digits of a number, one of which is not written
_BYTES: Mapping[str, Range] = {"int8": (-128, 127), "uint8": (0, 255), "bool": (0, 1)}


def largest_whole(e: Expr) -> float:
    """The largest absolute value of an expression that is a whole number in any case, whatever the data; infinite for
    what is none, or where that is not told by its form."""
    return max(map(abs, _whole(e)))


def holds(contract: Contract, e: Expr, dtype: str, result: str) -> bool:
    """Whether a half of that type holds a factor of products whose sums become a result: exactly, as a small whole
    number, or rounded no more than a bfloat16 that is the result is, or the contract's relative tolerance allows."""
    digits, stated = _DIGITS[dtype], contract.tolerance
    if largest_whole(e) <= 2**digits:
        return True
    usual = 2.0**-digits if result == dtype == "bfloat16" else 0.0  # tests allow halves less beside sums that cancel
    if stated.exact or (usual if stated.rtol is None else stated.rtol) < 2.0**-digits:
        return False
    normal = largest_magnitude(e, contract, lambda _: math.inf) <= _MOST and _least(e, contract) >= _LEAST
    return dtype != "float16" or normal


def _least(e: Expr, contract: Contract) -> float:
    """The least absolute value that an expression has if it is not nought; nought where nothing is known."""
    if largest_whole(e) < math.inf:
        return 1.0
    match e:
        case Load(buffer):
            low, high = _given(buffer, contract)
            return max(low, -high, 0.0) if low > -math.inf else 0.0
        case Op("prod", args):
            return math.prod(_least(x, contract) for x in args)
        case Op(name, (x,)) if name in _KEPT:
            return _least(x, contract)
    return 0.0


def _whole(e: Expr) -> Range:
    match e:
        case Const(value, _) | Number(Affine((), value), _):
            return (value, value) if float(value).is_integer() else _ANY
        case Load(_, _, dtype):
            return _BYTES.get(dtype, _ANY)
        case Op("and", (x, Number(Affine((), mask), _) | Const(mask, _))) if mask >= 0:
            low, high = _whole(x)
            return (0, min(high, mask)) if low >= 0 else (0, mask)
        case Op("or", (_, Number(Affine((), bits), _) | Const(bits, _))) if bits < 0:
            return bits, -1
        case Op("xor", (x, Number(Affine((), -1), _) | Const(-1, _))):
            low, high = _whole(x)
            return -1 - high, -1 - low
        case Op("ashr" | "lshr", (x, Number(Affine((), count), _) | Const(count, _))):
            low, high = _whole(x)
            return (low // 2**count, high // 2**count) if low >= 0 and high < math.inf else _ANY
        case Case() | Op("select"):
            parts = [_whole(x) for x in _beneath(e)]
            return min(low for low, _ in parts), max(high for _, high in parts)
        case Op("sum" | "prod" | "neg" | "max" | "min" as name, args):
            parts = [_whole(x) for x in args]
            return _ANY if any(math.isinf(end) for part in parts for end in part) else _of_operation(name, parts)
        case Op("float32" | "float64" | "int32" | "int64", (x,)):
            return _whole(x)
        case Op("int8", (x,)):
            low, high = _whole(x)
            return (low, high) if low >= -128 and high <= 127 else _BYTES["int8"]
        case Op("zext_int32" | "zext_int64", (x,)):
            low, high = _whole(x)
            return (low, high) if low >= 0 else _ANY
    return _ANY
