"""Faults in which element, thread or block is meant: indices, axes, strides."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.mutation.ground import Edit, Function

_AXES = {"x": "y", "y": "x", "z": "x"}
_CONFUSED = {
    "threadIdx": ("thread-for-block", "blockIdx"), "blockIdx": ("block-for-thread", "threadIdx"),
    "blockDim": ("block-for-grid", "gridDim"), "gridDim": ("grid-for-block", "blockDim"),
}  # fmt: skip


def indices(function: Function) -> Iterator[Edit]:
    """An index one further or one back, and the first element for all."""
    tokens = function.tokens
    for index, token in enumerate(tokens):
        if token.text != "[" or not index or (tokens[index - 1].kind != "name" and tokens[index - 1].text != "]"):
            continue
        if _is_declared(function, index):
            continue
        close = function.close(index)
        if close is None or close == index + 1:
            continue
        start, end = token.end, tokens[close].start
        inner = function.text(start, end)
        yield Edit("index-further", start, end, f"({inner}) + 1")
        yield Edit("index-back", start, end, f"({inner}) - 1")
        if close > index + 2:
            yield Edit("index-first", start, end, "0")


def layouts(function: Function) -> Iterator[Edit]:
    """Rows taken for columns: c * b + a for a * b + c."""
    tokens = function.tokens
    for index in range(len(tokens) - 4):
        a, times, b, plus, c = tokens[index : index + 5]
        if times.text != "*" or plus.text != "+" or not a.kind == b.kind == c.kind == "name":
            continue
        followed = tokens[index + 5].text if index + 5 < len(tokens) else ""
        if followed not in (".", "[", "(") and (not index or tokens[index - 1].text not in (".", "*", "/", "%")):
            yield Edit("layout-swapped", a.start, c.end, f"{c.text} * {b.text} + {a.text}")


def axes(function: Function) -> Iterator[Edit]:
    """Another axis, and a thread's number for a block's."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-2]):
        if token.text in _CONFUSED and tokens[index + 1].text == ".":
            axis = tokens[index + 2]
            operator, other = _CONFUSED[token.text]
            yield Edit(operator, token.start, token.end, other)
            if function.two_axes and axis.text in _AXES:
                yield Edit("axis-swapped", axis.start, axis.end, _AXES[axis.text])


def strides(function: Function) -> Iterator[Edit]:
    """A loop's step that is one too long."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text == "+=" and tokens[index - 1].kind == "name":
            end = _step_end(function, index + 1)
            if end is not None:
                yield Edit("stride-longer", tokens[index + 1].start, end,
                           f"({function.text(tokens[index + 1].start, end)} + 1)")  # fmt: skip


def _step_end(function: Function, at: int) -> int | None:
    """Where the step of a loop's header ends; None outside one."""
    depth = 0
    for token in function.tokens[at:]:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth < 0:
            return token.start
        if token.text in (";", "{", "}"):
            return None
    return None


def _is_declared(function: Function, index: int) -> bool:
    """Whether the bracket at an index gives an extent."""
    tokens, at = function.tokens, index - 1
    while at > 0 and tokens[at].text == "]":
        opening = at
        while opening > 0 and tokens[opening].text != "[":
            opening -= 1
        at = opening - 1
    if at < 1 or tokens[at].kind != "name":
        return False
    before = tokens[at - 1]
    if before.text == ",":
        statement = at
        while statement > 0 and tokens[statement - 1].text not in (";", "{", "}"):
            statement -= 1
        return tokens[statement].text in ("__shared__", "extern", "float", "int", "double", "unsigned")
    return before.kind == "name" and before.text not in ("return", "else")
