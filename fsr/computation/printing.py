"""A computation as people read it: a NumPy-like line a statement, and a sentence a statement."""

from __future__ import annotations

import math

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import (
    Affine,
    Carried,
    Case,
    Const,
    Expr,
    Fold,
    Index,
    Load,
    Number,
    Op,
    Recurrence,
    Remainder,
    distinct,
)  # fmt: skip

_INFIX = {"div": ("/", 2), "rem": ("%", 2), "gt": (">", 0), "ge": (">=", 0), "eq": ("==", 0), "ne": ("!=", 0)}
_BITS = {"and": "&", "or": "|", "xor": "^", "shl": "<<", "ashr": ">>", "lshr": ">>"}
_WIDTHS = {"float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "bool"}


def affine_text(a: Affine) -> str:
    """``2*i + n - 1``."""
    parts = [name if k == 1 else f"-{name}" if k == -1 else f"{k}*{name}" for name, k in a.terms]
    if a.constant or not parts:
        parts.append(str(a.constant))
    return " + ".join(parts).replace("+ -", "- ")


def index_text(index: Index) -> str:
    """An index as C and Python write it."""
    if isinstance(index, Affine):
        return affine_text(index)
    inner = affine_text(index.value)
    simple = len(index.value.terms) == 1 and not index.value.constant and index.value.terms[0][1] == 1
    sign = "%" if isinstance(index, Remainder) else "//"
    return f"{inner if simple else f'({inner})'} {sign} {index.by}"


def const_text(value: float | int, dtype: str) -> str:
    """The shortest number that reads as the value in its type."""
    if dtype == "bool":
        return str(bool(value))
    if isinstance(value, int):
        return str(value)
    if math.isinf(value) or math.isnan(value):
        return f"{value}"
    if value == int(value) and abs(value) < 1e9:
        return f"{value:.1f}"
    if dtype == "float64":
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if abs(float(text) - value) <= 2.0**-25 * abs(value):
            return text
    return repr(value)


def text(e: Expr, tight: float = 0) -> str:
    """An expression; ``tight``: how strongly what stands around it binds."""
    match e:
        case Const(value, dtype):
            return const_text(value, dtype)
        case Number(index, _):
            plain = isinstance(index, Affine) and len(index.terms) + bool(index.constant) < 2
            if isinstance(index, Affine) and tight >= 3:  # 1 / (16*n)
                plain = plain and all(k == 1 for _, k in index.terms)
            return index_text(index) if plain or tight < 1 else f"({index_text(index)})"
        case Load(buffer, indices, _):
            return buffer + (f"[{', '.join(map(text, indices))}]" if indices else "")
        case Fold(op, dims, body, inside):
            ranges = " ".join(f"for {n} in range({affine_text(x)})" for n, x in dims)
            return f"{op}({text(body)} {ranges}{' if inside' if inside else ''})"
        case Case(left, right, yes, no):
            found = f"{text(yes, 1)} if {affine_text(left)} <= {affine_text(right)} else {text(no, 0.5)}"
            return f"({found})"
        case Recurrence(dim, extent, start, step):
            return f"repeat(s = {text(start)}; for {dim} in range({affine_text(extent)}): s = {text(step)})"
        case Carried():
            return "s"
        case Op():
            return _operation(e, tight)
    raise AssertionError(e)


def _operation(e: Op, tight: float) -> str:
    def bracketed(found: str, own: float) -> str:
        return f"({found})" if tight > own else found

    args = e.args
    if e.name == "sum" and len(args) > 1:
        return bracketed(" + ".join(text(a, 1) for a in args).replace("+ -", "- "), 0.5)
    if e.name == "prod" and len(args) > 1:
        return bracketed(" * ".join(text(a, 2) for a in args), 1.5)
    if e.name == "neg":
        return "-" + text(args[0], 2)
    if e.name in _INFIX and len(args) == 2:
        sign, own = _INFIX[e.name]
        return bracketed(f"{text(args[0], own)} {sign} {text(args[1], own + 1)}", own - 0.5)
    if e.name in _BITS and len(args) == 2:
        return bracketed(f"{text(args[0], 3)} {_BITS[e.name]} {text(args[1], 3)}", 0.2)
    if e.name == "select":
        return f"({text(args[1], 1)} if {text(args[0])} else {text(args[2], 1)})"
    return f"{e.name}({', '.join(map(text, args))})"


def line(s: Statement) -> str:
    """A statement as one NumPy-like line."""
    where = f"[{', '.join(map(text, s.place))}]" if s.place else ""
    if s.value is None:
        return f"{s.target}{where} = ?({', '.join(s.reads)})"
    return f"{s.target}{where} {s.combine}= {text(s.value)}"


def lines(c: Computation) -> list[str]:
    """A line a statement."""
    return [line(s) for s in c.statements]


def words(c: Computation) -> list[str]:
    """A sentence a statement: its kind, its domain, what it folds and reads."""
    return [_sentence(s, c) for s in c.statements]


def _sentence(s: Statement, c: Computation) -> str:
    domain = " × ".join(extent for _, extent in s.domain) or "one value"
    if s.value is None:
        return f"{s.target}: opaque, made from {', '.join(s.reads)}"
    read = list(dict.fromkeys(e.buffer for e in distinct(s.value) if isinstance(e, Load) and e.indices))
    made = {"map": "each element once", "scatter": "elements that data chooses", "sequence": "a sequence in time"}
    kind = made.get(s.kind, "")
    if isinstance(s.value, Fold):
        over = " × ".join(affine_text(x) for _, x in s.value.dims)
        kind = f"{'running ' if s.kind == 'scan' else ''}{s.value.op} over {over}"
    wide = {b.name: b.dtype for b in c.buffers}.get(s.target, "")
    return f"{s.target} ({wide}, {domain}): {kind}" + (f", from {', '.join(read)}" if read else "")
