"""Small faults planted in a good kernel, to measure how good the tests are.

Every mutant is the kernel with one slip that people (and models) make: a bound off by one, a dropped barrier, a
wrong initial value. They are made on the tokens of the kernel's body, so comments and strings are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fsr.source.entry import function_name
from fsr.source.tokens import Token, close_of, line_of, tokenize

_RELAXED = {"<": "<=", ">": ">=", "<=": "<", ">=": ">"}
_OPERATORS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "+": "-", "-": "+", "*": "+", "/": "*", ">>=": "<<="}
_CALLS = {
    "fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max", "expf": "exp2f", "rsqrtf": "sqrtf",
    "__shfl_down_sync": "__shfl_up_sync", "__shfl_xor_sync": "__shfl_down_sync", "atomicMax": "atomicMin",
}  # fmt: skip
_HALF = '#include <cuda_fp16.h>\n'  # fmt: skip
_SYMBOLS = re.compile(r"<<=|>>=|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|<<|>>")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel with one planted fault. ``name`` is stable: the fault, and where (``bound@12:17``, line and column
    of the original); ``line`` the 1-based line in the original source."""

    name: str
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class _Edit:
    fault: str
    start: int
    end: int
    text: str
    header: str = ""


def mutants(source: str, entry: str) -> list[Mutant]:
    """Every planted fault of the kernel ``entry`` (templates by bare name or name expression), each once, in the
    order of the text. Raises ValueError when the source does not define that kernel."""
    body = _body(source, function_name(entry))
    found: dict[str, Mutant] = {}
    for edit in sorted(_edits(source, body), key=lambda e: (e.start, e.fault)):
        text = edit.header + source[: edit.start] + edit.text + source[edit.end :]
        line = line_of(source, edit.start)
        column = edit.start - source.rfind("\n", 0, edit.start)
        found.setdefault(text, Mutant(f"{edit.fault}@{line}:{column}", text, line))
    found.pop(source, None)
    return list(found.values())


def _body(source: str, name: str) -> list[Token]:
    """The tokens between the kernel's braces, with operators of several characters joined."""
    tokens = [t for t in tokenize(source) if t.kind != "directive"]
    for index, token in enumerate(tokens):
        if token.text != name or tokens[index + 1].text != "(":
            continue
        close = close_of(tokens, index + 1)
        if close is not None and close + 1 < len(tokens) and tokens[close + 1].text == "{":
            end = close_of(tokens, close + 1)
            return _joined(source, tokens[close + 2 : end])
    raise ValueError(f"the source defines no kernel {name!r}")


def _joined(source: str, tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if found and token.start < found[-1].end:
            continue
        match = _SYMBOLS.match(source, token.start) if token.kind == "punct" else None
        found.append(Token("punct", match.group(), token.start) if match else token)
    return found


def _edits(source: str, body: list[Token]) -> Iterator[_Edit]:
    for make in (
        _bounds, _operators, _calls, _barriers, _initial_values, _guards, _indices, _atomics, _accumulators, _stores,
        _strides, _constants,
    ):  # fmt: skip
        yield from make(source, body)


def _bounds(source: str, body: list[Token]) -> Iterator[_Edit]:
    """Off by one: < for <=, and a loop or guard that stops one early."""
    for index, token in enumerate(body):
        if token.text not in _RELAXED or _is_template(body, index):
            continue
        yield _Edit("bound", token.start, token.end, _RELAXED[token.text])
        if token.text == "<" and index + 1 < len(body) and body[index + 1].kind == "name":
            end = _operand_end(body, index + 1)
            text = source[body[index + 1].start : end]
            yield _Edit("lost-last", body[index + 1].start, end, f"{text} - 1")


def _operators(source: str, body: list[Token]) -> Iterator[_Edit]:
    for index, token in enumerate(body):
        binary = index > 0 and (body[index - 1].kind in ("name", "number") or body[index - 1].text in (")", "]"))
        declares = token.text == "*" and (index < 2 or body[index - 1].text in ("float", "int", "unsigned", "double"))
        if token.text in _OPERATORS and binary and not declares:
            yield _Edit("operator", token.start, token.end, _OPERATORS[token.text])


def _calls(source: str, body: list[Token]) -> Iterator[_Edit]:
    for token in body:
        if token.text in _CALLS:
            yield _Edit("call", token.start, token.end, _CALLS[token.text])


def _barriers(source: str, body: list[Token]) -> Iterator[_Edit]:
    """A dropped barrier, and one that stands a statement too early."""
    for index, token in enumerate(body):
        if token.text not in ("__syncthreads", "__syncwarp"):
            continue
        close = close_of(body, index + 1)
        if close is None:
            continue
        end = body[close + 1].end
        yield _Edit("barrier-dropped", token.start, end, ";")
        before = _statement_before(body, index - 2)
        if index > 0 and body[index - 1].text == ";" and before >= 0:
            first = body[before + 1]
            statement = source[first.start : body[index - 1].end]
            if first.text not in ("for", "else", "__shared__", "float", "int", "if"):
                yield _Edit("barrier-early", first.start, end, f"{source[token.start : end]} {statement}")


def _initial_values(source: str, body: list[Token]) -> Iterator[_Edit]:
    for index in range(1, len(body) - 2):
        equals, value, after = body[index : index + 3]
        if equals.text != "=" or after.text not in (";", ","):
            continue
        if value.kind == "number":
            zero = re.fullmatch(r"0*\.?0*[fFuUlL]*", value.text) is not None
            yield _Edit("initial", value.start, value.end, "1" if zero else "0")
        elif value.kind == "name":
            yield _Edit("initial", value.start, value.end, f"{value.text} + 1")
    for a, b in pairwise(body):
        if a.text == "-" and b.text in ("INFINITY", "FLT_MAX", "CUDART_INF_F"):
            yield _Edit("initial", a.start, b.end, "0.0f")


def _guards(source: str, body: list[Token]) -> Iterator[_Edit]:
    """A condition that is always true, or, before a return, never."""
    for index, token in enumerate(body[:-2]):
        if token.text != "if":
            continue
        close = close_of(body, index + 1)
        if close is None or close + 1 >= len(body):
            continue
        leaves = body[close + 1].text == "return" or (
            body[close + 1].text == "{" and close + 2 < len(body) and body[close + 2].text == "return"
        )
        start, end = body[index + 1].end, body[close].start
        yield _Edit("guard", start, end, "false" if leaves else "true")


def _indices(source: str, body: list[Token]) -> Iterator[_Edit]:
    """Shifted by one, with swapped terms, along another axis."""
    axes = {"x": "y", "y": "x"} if any(a.text == "." and b.text == "y" for a, b in pairwise(body)) else {}
    for index, token in enumerate(body):
        before = body[index - 1].text if index else ""
        if token.text == "[" and index and body[index - 1].kind == "name" and not _declares(body, index - 1):
            close = close_of(body, index)
            if close is not None:
                inner = source[token.end : body[close].start]
                yield _Edit("index-shifted", token.end, body[close].start, f"({inner}) + 1")
        if token.text in axes and before == "." and body[index - 2].text in ("threadIdx", "blockIdx"):
            yield _Edit("axis", token.start, token.end, axes[token.text])
    for index in range(len(body) - 4):
        a, times, b, plus, c = body[index : index + 5]
        if times.text == "*" and plus.text == "+" and a.kind == b.kind == c.kind == "name":
            followed = body[index + 5].text if index + 5 < len(body) else ""
            if followed not in (".", "[", "("):
                yield _Edit("index-swapped", a.start, c.end, f"{c.text} * {b.text} + {a.text}")


def _atomics(source: str, body: list[Token]) -> Iterator[_Edit]:
    for index, token in enumerate(body):
        if token.text != "atomicAdd":
            continue
        close = close_of(body, index + 1)
        comma = _comma(body, index + 1)
        if close is None or comma is None:
            continue
        where = source[body[index + 1].end : body[comma].start]
        value = source[body[comma].end : body[close].start]
        yield _Edit("atomic-dropped", token.start, body[close].end, f"*({where}) += {value}")


def _accumulators(source: str, body: list[Token]) -> Iterator[_Edit]:
    """A sum kept in float16, as a careless use of half would."""
    floats = {b.text for a, b in pairwise(body) if a.text == "float" and b.kind == "name"}
    for index, token in enumerate(body[:-1]):
        if token.text not in floats or body[index + 1].text != "+=":
            continue
        stop = _statement_end(body, index)
        value = source[body[index + 1].end : body[stop].start]
        text = f"{token.text} = __half2float(__float2half({token.text} + ({value.strip()})))"
        yield _Edit("half-accumulator", token.start, body[stop].start, text, _HALF)


def _stores(source: str, body: list[Token]) -> Iterator[_Edit]:
    """A store into an array that never happens: shared memory stays stale, an output unwritten."""
    for index, token in enumerate(body[:-1]):
        if token.text != "[" or body[index - 1].kind != "name" or _declares(body, index - 1):
            continue
        start = index - 1
        if start and body[start - 1].text not in (";", "{", "}", ")", "else"):
            continue
        close = close_of(body, index)
        while close is not None and close + 1 < len(body) and body[close + 1].text == "[":
            close = close_of(body, close + 1)
        if close is not None and close + 1 < len(body) and body[close + 1].text in ("=", "+="):
            yield _Edit("store-dropped", body[start].start, body[_statement_end(body, start)].start, "")


def _strides(source: str, body: list[Token]) -> Iterator[_Edit]:
    """Steps of loops: += step is one too long, grid strides forget the grid."""
    for index in range(len(body) - 2):
        if body[index].text == "+=" and body[index - 1].kind == "name" and body[index + 2].text in (")", "."):
            step = body[index + 1]
            if step.kind == "number":
                yield _Edit("stride", step.start, step.end, f"({step.text} + 1)")
            elif step.text in ("blockDim", "gridDim"):
                end = body[index + 3].end
                yield _Edit("stride", step.start, end, f"({source[step.start : end]} + 1)")
        if body[index].text == "++" and body[index + 1].text == ")":
            yield _Edit("stride", body[index].start, body[index].end, " += 2")
    for match in re.finditer(r"\*\s*gridDim\.x|gridDim\.x\s*\*", source[body[0].start : body[-1].end]):
        offset = body[0].start
        yield _Edit("stride", offset + match.start(), offset + match.end(), "")


def _constants(source: str, body: list[Token]) -> Iterator[_Edit]:
    """A floating constant wrong in its third digit, an extent or power of two halved."""
    for token in body:
        if re.fullmatch(r"\d*\.\d+f?|\d+\.\d*f?", token.text) and float(token.text.rstrip("f")) not in (0.0, 1.0):
            yield _Edit("constant", token.start, token.end, f"({token.text} * 1.001f)")
        elif re.fullmatch(r"2|16|32|64|128|256", token.text):
            yield _Edit("constant", token.start, token.end, str(int(token.text) // 2))


# ---------------------------------------------------------------- reading tokens


def _is_template(body: list[Token], index: int) -> bool:
    return body[index - 1].text.endswith("_cast") or (body[index].text == ">" and body[index - 1].text == "*")


def _declares(body: list[Token], index: int) -> bool:
    return index > 0 and body[index - 1].text in ("float", "int", "double", "unsigned", "float4")


def _operand_end(body: list[Token], index: int) -> int:
    """The end of a name with its members: ``n``, ``blockDim.x``."""
    while index + 2 < len(body) and body[index + 1].text == "." and body[index + 2].kind == "name":
        index += 2
    return body[index].end


def _statement_end(body: list[Token], index: int) -> int:
    depth = 0
    for at in range(index, len(body)):
        depth += (body[at].text in "([{") - (body[at].text in ")]}")
        if depth < 0 or (depth == 0 and body[at].text == ";"):
            return at
    return len(body) - 1


def _statement_before(body: list[Token], index: int) -> int:
    """The index of the ; { or } outside parentheses that ends the statement before, -1 when there is none."""
    depth = 0
    for at in range(index, -1, -1):
        depth += (body[at].text in ")]") - (body[at].text in "([")
        if depth == 0 and body[at].text in (";", "{", "}"):
            return at
    return -1


def _comma(body: list[Token], opening: int) -> int | None:
    depth = 0
    for at in range(opening, len(body)):
        depth += (body[at].text in "([{") - (body[at].text in ")]}")
        if depth == 1 and body[at].text == ",":
            return at
    return None
