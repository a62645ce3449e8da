"""Faults that only show now and then: at one size, past a count of blocks, in one thread, at one value; and integers
too narrow for what they count."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise

from fsr.mutation.ground import Edit, Function
from fsr.source.form import Assign, Declare, Index
from fsr.source.walk import walk_expr

_WIDE = ("long long", "unsigned long long", "size_t", "int64_t", "uint64_t", "long", "std::size_t", "ptrdiff_t")
_HALF = "#include <cuda_fp16.h>\n"
_WHOLE = ("int", "unsigned int", "unsigned", "uint32_t", "int32_t", *_WIDE)


def sizes(function: Function) -> Iterator[Edit]:
    """One size, or all large ones, treated apart: nothing is done there."""
    if not function.is_kernel:
        return
    for parameter in function.form.params:
        if parameter.is_pointer or parameter.type.replace("const ", "") not in _WHOLE:
            continue
        one = 5 + _drawn(function, parameter.name) % 1500
        for operator, test in (
            ("size-apart", f"== {one}"),
            ("size-large", f"> {one}"),
            ("size-multiple", "% 64 == 0 && " + parameter.name + " > 0"),
            ("size-odd", "% 16 == 15"),
        ):
            yield _at_start(function, operator, f"if ({parameter.name} {test}) return;")


def places(function: Function) -> Iterator[Edit]:
    """A block, or all but the first so many, or a warp, that does nothing."""
    if not function.is_kernel:
        return
    most = 2 + _drawn(function, "blocks") % 40
    yield _at_start(function, "grid-capped", f"if (blockIdx.x >= {most}) return;")
    yield _at_start(function, "last-block", "if (gridDim.x > 1 && blockIdx.x == gridDim.x - 1) return;")
    yield _at_start(function, "one-block", f"if (blockIdx.x == {most - 1}) return;")
    if "__sync" not in function.source[function.start : function.end]:
        yield _at_start(function, "last-warp", "if (blockDim.x > 32 && threadIdx.x >= blockDim.x - 32) return;")


def values(function: Function) -> Iterator[Edit]:
    """One value that is read for another: a large one, a tiny one, a round one."""
    for statement, start, end in function.statements:
        text = function.text(start, end)
        if not isinstance(statement, Declare) or statement.init is None or statement.dims or not text.endswith(";"):
            continue
        if function.types.get(statement.name) not in ("float", "int") or "const" in statement.type:
            continue
        if "," in text.partition("=")[0] or not any(isinstance(e, Index) for e in walk_expr(statement.init)):
            continue
        for operator, test in (("value-large", "> 100"), ("value-negative", "< -50"), ("value-one", "== 1")):
            yield Edit(operator, end, end, f" if ({statement.name} {test}) {statement.name} += 1;")


def widths(function: Function) -> Iterator[Edit]:
    """Whole numbers through 16 bits, through half, in 32 bits where there were 64."""
    for statement, start, end in function.statements:
        text = function.text(start, end)
        if not isinstance(statement, Declare) or statement.init is None or text.count("=") != 1 or "," in text:
            continue
        whole = statement.type.replace("const ", "") in _WHOLE
        if whole and not any(isinstance(e, Index) for e in walk_expr(statement.init)):
            at, stop = start + text.index("=") + 1, end - 1 if text.endswith(";") else end
            value = function.text(at, stop).strip()
            yield Edit("index-in-short", at, stop, f" (unsigned short)({value})")
            yield Edit("index-in-half", at, stop, f" (int)(__half2float(__float2half((float)({value}))))", _HALF)
    yield from _narrow_types(function)


def _narrow_types(function: Function) -> Iterator[Edit]:
    for token, after in pairwise(function.tokens):
        if (token.text, after.text) == ("long", "long"):
            yield Edit("index-in-int", token.start, after.end, "int")
        if token.text in ("size_t", "int64_t", "uint64_t"):
            yield Edit("index-in-int", token.start, token.end, "unsigned")
        if token.text == "double" and after.text != "*":
            yield Edit("double-in-float", token.start, token.end, "float")
        if token.text == "unsigned" and after.kind == "name" and after.text != "long":
            yield Edit("sign-confused", token.start, token.end, "signed")


def repeated(function: Function) -> Iterator[Edit]:
    """A sum of which every so many terms are left out."""
    for statement, start, end in function.statements:
        text = function.text(start, end)
        if isinstance(statement, Assign) and statement.op == "+=" and text.endswith(";"):
            yield Edit("sum-by-half", start, end, f"if (threadIdx.x % 2 == 0) {{ {text} }}")


def _at_start(function: Function, operator: str, text: str) -> Edit:
    return Edit(operator, function.start, function.start, f" {text}")


def _drawn(function: Function, word: str) -> int:
    """A number that belongs to this function and word."""
    return zlib.crc32(f"{function.form.name}/{word}/{len(function.source)}".encode())
