"""Forms of a kernel in which more of it can be told: the same work, written as the analyses of memory know it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fsr.analysis.braces import expression_of, with_members_set
from fsr.analysis.macros import expanded
from fsr.hardware.c_types import LANES
from fsr.source.counted import counted
from fsr.source.form import (
    Call,
    Declare,
    KernelForm,
    OpaqueExpr,
    Stmt,
)
from fsr.source.mapping import map_stmts
from fsr.source.types import plain_type
from fsr.source.walk import Block
from fsr.transform.details.register_promotion import promoted
from fsr.transform.lanes.returned import with_returned_written_out
from fsr.transform.lanes.steps import by_turn
from fsr.transform.rows.row_kernel import in_one_form
from fsr.transform.target import Target


def forms(target: Target) -> Iterator[Target]:
    """The kernel as it is written, and in forms in which more of it may be shared."""
    for form in _written(target):
        yield form
        body = by_turn(form.kernel.body)
        if body != form.kernel.body:
            yield replace(form, kernel=replace(form.kernel, body=body))


def _written(target: Target) -> Iterator[Target]:
    """The kernel with macros written out, with what it keeps in memory kept in variables, and without what different
    hands write differently; then with functions written out that go through loops."""
    kernel = with_members_set(expanded(target.kernel, target.source), target.source)
    kernel = replace(kernel, body=counted(kernel.body, ending=True))
    yield from _with_kept(kernel, target)
    called = with_returned_written_out(kernel, target.source, target.functions)
    if called is not kernel:
        yield from _with_kept(called, target)


def _with_kept(kernel: KernelForm, target: Target) -> Iterator[Target]:
    plain = replace(target, kernel=replace(kernel, body=_made(kernel.body, target)))
    yield plain
    kept = replace(plain, kernel=replace(plain.kernel, body=promoted(plain)))
    if kept.kernel.body != plain.kernel.body:
        yield kept
    for form in dict.fromkeys((plain, kept)):
        other = in_one_form(form)
        if other.kernel.body != form.kernel.body:
            yield other


def _made(body: Block, target: Target) -> Block:
    """The statements with built-in vectors made by calls: ``make_float3(a, b, c)`` for ``{a, b, c}``."""

    def change(s: Stmt) -> Stmt:
        match s:
            case Declare(type=type_, init=OpaqueExpr(text), dims=()) if text.startswith("{") and text.endswith("}"):
                plain = plain_type(type_.removeprefix("const "), target.aliases)
                element = LANES.get(plain)
                value = (
                    expression_of(f"make_{plain}({text[1:-1].strip().rstrip(',')})") if element is not None else None
                )
                if isinstance(value, Call) and element is not None and len(value.args) == element[1]:
                    return replace(s, init=value)
        return s

    return map_stmts(body, change)
