"""Faults in what is kept: stores that are lost, too narrow, or bent at special values; statements that are lost."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.mutation.ground import FLOATS, Edit, Function
from fsr.source.form import Assign, ExprStmt, Index, Stmt, Unary
from fsr.source.walk import base_name

_HALF = "#include <cuda_fp16.h>\n"
# What a store of a floating value becomes; %s is the value, in float.
_SPECIAL = {
    "nan-lost": "(%s == %s ? %s : 0.0f)",
    "infinity-lost": "fminf(fmaxf(%s, -3.0e38f), 3.0e38f)",
    "small-lost": "(fabsf(%s) < 1e-30f ? 0.0f : %s)",
    "negative-lost": "fmaxf(%s, -1.0e6f)",
}


def stores(function: Function) -> Iterator[Edit]:
    """A store into an array that never happens, or that one thread or the last block leaves out."""
    for statement, start, end in function.statements:
        if not _stores(statement):
            continue
        text = function.text(start, end)
        yield Edit("store-dropped", start, end, ";")
        yield Edit("store-not-by-one", start, end, f"if (threadIdx.x != 17) {{ {text} }}")
        yield Edit("store-not-by-last", start, end, f"if (blockIdx.x + 1 != gridDim.x || gridDim.x < 3) {{ {text} }}")
        yield Edit("store-twice-around", start, end, f"if (blockIdx.x < 64) {{ {text} }}")


def statements(function: Function) -> Iterator[Edit]:
    """An update of a variable, or a call, that is lost."""
    for statement, start, end in function.statements:
        text = function.text(start, end)
        if isinstance(statement, Assign) and not _stores(statement) and text.endswith(";"):
            yield Edit("update-dropped", start, end, ";")
        if isinstance(statement, ExprStmt) and text.endswith(";") and not text.startswith("__sync"):
            yield Edit("call-dropped", start, end, ";")


def special_values(function: Function) -> Iterator[Edit]:
    """A stored value that is no number, infinite or very small, lost on the way."""
    for value, start, end in _floating_stores(function):
        for operator, form in _SPECIAL.items():
            yield Edit(operator, start, end, form.replace("%s", f"({value})"))


def precisions(function: Function) -> Iterator[Edit]:
    """Floating values through half or fewer bits; sums that are kept in half."""
    for value, start, end in _floating_stores(function):
        yield Edit("store-in-half", start, end, f"__half2float(__float2half({value}))", _HALF)
        yield Edit("store-cut", start, end, f"__int_as_float(__float_as_int((float)({value})) & 0xffffff00)")
    for statement, start, end in function.statements:
        if not isinstance(statement, Assign) or statement.op not in ("+=", "-="):
            continue
        if function.types.get(base_name(statement.target) or "") == "float":
            left, _, right = function.text(start, end).partition(statement.op)
            tail = ";" if right.rstrip().endswith(";") else ""
            summed = f"{left.strip()} {statement.op[0]} ({right.strip().rstrip(';')})"
            text = f"{left.strip()} = __half2float(__float2half({summed})){tail}"
            yield Edit("sum-in-half", start, end, text, _HALF)


def _stores(statement: Stmt) -> bool:
    target = statement.target if isinstance(statement, Assign) else None
    return isinstance(target, Index) or (isinstance(target, Unary) and target.op == "*")


def _floating_stores(function: Function) -> Iterator[tuple[str, int, int]]:
    """The values of stores into float arrays of the kernel's arguments, with their places."""
    parameters = {p.name for p in function.form.params if p.is_pointer}
    for statement, start, end in function.statements:
        if not isinstance(statement, Assign) or statement.op != "=" or not _stores(statement):
            continue
        name = base_name(statement.target)
        if name not in parameters or function.types.get(name or "") not in FLOATS[:1]:
            continue
        left, equals, value = function.text(start, end).partition("=")
        if equals and value.rstrip().endswith(";"):
            first = start + len(left) + 1 + len(value) - len(value.lstrip())
            text = value.strip().removesuffix(";")
            yield text, first, first + len(text)
