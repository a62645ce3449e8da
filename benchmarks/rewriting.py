"""Right candidates that nobody wrote by hand: the original rewritten as any programmer may.

Some lines are written otherwise (another type of index, a float64 sum or function, a fused operation, operands in the
other order, a condition turned round, unrolled loops), or one or two of the search's moves give it another shape
(blocks, widths, tiles, rows a warp) and lines of that are written otherwise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from benchmarks.composing import Composed
from benchmarks.kernels.sources import Subject
from fsr.mutation.ground import Function, functions
from fsr.records import Candidate
from fsr.search.proposal import Rules, Space
from fsr.source.form import Assign, Declare, For, If, Literal
from fsr.transform.protocol import Action, Move
from fsr.transform.registry import all_actions

Rewrite = tuple[str, int, int, str]
"""What it is, the characters that it replaces, and by what."""

MOST = 4  # lines of one candidate that are written otherwise
SHAPED = 0.6  # how many candidates get another shape first
# These are held to other bounds, or are wrong on purpose where a contract says so.
WHOLE = ("int", "unsigned int", "unsigned", "long long", "size_t", "int64_t", "long")
NOT_EXACT = ("fast-math", "reciprocal", "compile-flags", "index32")
ROUNDED = ("float64", "fused")
_PAIR = re.compile(r"[=(,]\s*([A-Za-z_]\w*(?:\[[^\][]*\])?) *([*+]) *([A-Za-z_]\w*(?:\[[^\][]*\])?)(?= *[;)])")
_GUARD = re.compile(r"^if\s*\(\s*(\w+)\s*(<|>=)\s*(\w+)\s*\)")
_FLOAT64 = re.compile(r"\b(expf|sqrtf|logf|tanhf)\s*\(")
_OPPOSITE = {"<": ">=", ">=": "<"}


def right(original: Candidate, chance: random.Random) -> Composed | None:
    """A candidate some of whose lines are written otherwise; None where nothing can be."""
    ways = [way for function in functions(original) for way in _rewrites(function, chance)]
    if not ways:
        return None
    chosen: list[Rewrite] = []
    for way in chance.sample(ways, min(len(ways), chance.randint(1, MOST))):
        if all(way[2] < other[1] or way[1] > other[2] for other in chosen):
            chosen.append(way)
    source = original.source
    for _, start, end, text in sorted(chosen, key=lambda w: w[1], reverse=True):
        source = source[:start] + text + source[end:]
    return Composed(replace(original, source=source), tuple(what for what, *_ in chosen))


def reshaped(subject: Subject, chance: random.Random) -> Composed | None:
    """A candidate of another shape, or with lines written otherwise, or both; None where there is none, or where its
    results are rounded otherwise though they must be exact."""
    found = _reshaped(subject, chance)
    rounded = found is not None and any(part.endswith(ROUNDED) for part in found.parts)
    return None if rounded and subject.contract.tolerance.exact else found


def _reshaped(subject: Subject, chance: random.Random) -> Composed | None:
    if chance.random() >= SHAPED:
        return right(subject.candidate, chance)
    parts: list[str] = []
    current = subject.candidate
    for _ in range(chance.randint(1, 2)):
        options = _options(_space(subject), current)
        if not options:
            break
        name = chance.choice(sorted({action.name for action, _ in options}))
        action, move = chance.choice([pair for pair in options if pair[0].name == name])
        after = _space(subject).applied(current, action, move)
        if after is not None:
            current = after
            parts.append(move.name)
    lines = right(current, chance) if chance.random() < 0.5 else None
    if not parts:
        return lines
    return Composed(lines.candidate if lines else current, (*parts, *(lines.parts if lines else ())))


@cache
def _space(subject: Subject) -> Space:
    exact = tuple(a for a in all_actions() if a.name not in NOT_EXACT)
    return Space(Rules(subject.contract), exact, lambda action, fault: None)


@cache
def _options(space: Space, candidate: Candidate) -> list[tuple[Action, Move]]:
    return space.moves(candidate)


def _rewrites(function: Function, chance: random.Random) -> Iterator[Rewrite]:
    for statement, start, end in function.statements:
        text = function.text(start, end)
        if isinstance(statement, For) and not statement.pragmas:
            count = chance.choice((1, 2, 3, 4, 8))
            yield f"unroll {count}", start, start, f"\n#pragma unroll {count}\n"
        guard = _GUARD.match(text) if isinstance(statement, If) else None
        if guard and all(function.types.get(name) in WHOLE for name in (guard[1], guard[3])):  # of floats: NaN
            turned = f"if (!({guard[1]} {_OPPOSITE[guard[2]]} {guard[3]}))"
            yield "a condition turned round", start, start + guard.end(), turned
        if isinstance(statement, Declare) and statement.init is not None and "," not in text:
            yield from _wider(function, statement, start, text)
        if isinstance(statement, Declare | Assign):
            yield from _otherwise(function, start, text)
        if isinstance(statement, Assign) and statement.op == "+=" and text.endswith(";"):
            yield from _fused(function, start, end, text)


def _otherwise(function: Function, start: int, text: str) -> Iterator[Rewrite]:
    """Operands in the other order, and functions in float64, of one line."""
    for pair in _PAIR.finditer(text):
        if pair[1].partition("[")[0] in function.types:
            yield "operands exchanged", start + pair.start(1), start + pair.end(3), f"{pair[3]} {pair[2]} {pair[1]}"
    for call in _FLOAT64.finditer(text):
        close = _closing(text, call.end() - 1)
        if close:
            inner = text[call.end() : close]
            name = call[1][:-1]
            yield f"{name} in float64", start + call.start(), start + close + 1, f"(float){name}((double)({inner}))"


def _closing(text: str, at: int) -> int:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if not depth:
            return index
    return 0


def _fused(function: Function, start: int, end: int, text: str) -> Iterator[Rewrite]:
    left, _, value = text.partition("+=")
    product = re.fullmatch(r"\s*(\w+(?:\[[^\][]*\])?)\s*\*\s*(\w+(?:\[[^\][]*\])?)\s*;", value)
    name = left.strip()
    if product and function.types.get(name) == "float":
        yield "fused", start, end, f"{name} = fmaf({product[1]}, {product[2]}, {name});"
    elif re.fullmatch(r"\w+", name) and ";" not in value[:-1]:
        yield "added in full", start, end, f"{name} = {name} + ({value.strip()[:-1]});"


def _wider(function: Function, declared: Declare, start: int, text: str) -> Iterator[Rewrite]:
    indexes = re.match(r"int\s+\w+\s*=", text) and "blockDim" in text
    if indexes and not _pointed_at(function, declared.name):
        yield "a wider index", start, start + 3, "long long"
    sums = re.match(r"float\s+\w+\s*=\s*0", text) and isinstance(declared.init, Literal)
    if sums and _is_sum(function, declared.name):
        yield "a sum in float64", start, start + 5, "double"


def _is_sum(function: Function, name: str) -> bool:
    """Whether a variable is only added to and then read in what is stored."""
    text = function.source[function.start : function.end]
    return re.search(rf"\b{name}\s*\+=", text) is not None and re.search(rf"[(&,]\s*{name}\s*[,)]", text) is None


def _pointed_at(function: Function, name: str) -> bool:
    """Whether the index is used where its type matters: in a call or with other operators than + - *."""
    text = function.source[function.start : function.end]
    chosen = rf"\b(?:min|max|abs)\s*\([^()]*\b{name}\b"  # overloaded: another type may be ambiguous
    return re.search(rf"&\s*{name}\b|[(,]\s*{name}\s*[,)]|{chosen}", text) is not None
