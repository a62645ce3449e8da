"""Lists in braces, which the form keeps as text: ``{a, b}`` and ``float2{a, b}``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fsr.source.emit import emit_expr
from fsr.source.form import Assign, Call, Expr, Name, OpaqueExpr
from fsr.source.mapping import map_exprs
from fsr.source.parse import parse_kernels
from fsr.source.tokens import close_of, spelt, split_commas, tokenize
from fsr.source.walk import Block, walk_expr

_LISTED = "int"  # a name that calls nothing


@lru_cache(maxsize=256)
def listed(text: str) -> tuple[str, tuple[Expr, ...]] | None:
    """What stands before the braces, and the expressions between them, lists as text; None for what is no list of
    expressions."""
    tokens = tokenize(text)
    at = next((i for i, t in enumerate(tokens) if t.text == "{"), None)
    if at is None or close_of(tokens, at) != len(tokens) - 1:
        return None
    if any(t.kind != "name" and t.text != "::" for t in tokens[:at]):
        return None
    parts = [spelt(part) for part in split_commas(tokens[at + 1 : -1]) if part]
    found = [_expression(part) for part in parts]
    kept = tuple(e for e in found if e is not None)
    return (spelt(tokens[:at]), kept) if len(kept) == len(found) else None


def _expression(text: str) -> Expr | None:
    if text.startswith("{"):
        return OpaqueExpr(text) if listed(text) is not None else None
    kernels = parse_kernels(f"__global__ void f()\n{{\n    x = {text};\n}}\n")
    match kernels["f"].body if "f" in kernels else ():
        case (Assign(Name("x"), "=", value),) if not any(isinstance(e, OpaqueExpr) for e in walk_expr(value)):
            return value
    return None


def without_braces(body: Block) -> Block:
    """Statements, to be looked at, with a call in the place of each list."""

    def change(e: Expr) -> Expr:
        found = listed(e.text) if isinstance(e, OpaqueExpr) and e.text else None
        return e if found is None else Call(Name(_LISTED), tuple(map(change, found[1])))

    return map_exprs(body, change)


def changed_inside(e: OpaqueExpr, change: Callable[[Expr], Expr]) -> OpaqueExpr:
    """A list with each of its expressions changed; any other text as it is."""
    found = listed(e.text) if e.text else None
    if found is None:
        return e
    parts = [changed_inside(part, change) if isinstance(part, OpaqueExpr) else change(part) for part in found[1]]
    return OpaqueExpr(f"{found[0]}{{{', '.join(map(emit_expr, parts))}}}")
