"""Tables that threads look up by their data are read from shared memory.

Constant memory answers one address at a time: 32 threads with 32 indices wait 32 times. Shared memory answers 32 banks
at once (CUDA C++ Programming Guide, "Constant Memory", "Shared Memory"). Each block copies the table first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.types import aliases, resolved
from fsr.hardware.c_types import element_bytes
from fsr.records import Candidate
from fsr.source.items import Item, flat, parse_items, standing_for
from fsr.source.names import words
from fsr.source.token import Token
from fsr.source.tokens import close_of, spelt, split_commas, tokenize
from fsr.source.walk import fresh
from fsr.transform.details.argument_tables import argument_tables, with_copy
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

MOST_BYTES = 16384  # of all tables of a kernel together, beside what it shares already
FEWEST = 16  # elements of a table that is worth it
_GAIN = 1.3
_CONSTANT, _DEVICE = frozenset(["__constant__"]), frozenset(["__device__"])
_KERNEL = frozenset(["__global__"])
_QUALIFIERS = frozenset(["static", "const", "constexpr", "inline", "__restrict__"])
_BEFORE_VALUES = frozenset(["return", "case", "else", "do"])
_SUFFIX = "_shared"


@dataclass(frozen=True, slots=True)
class Table:
    """An array at file scope. ``end``: where its declaration ends in the source."""

    name: str
    type: str
    extents: tuple[int, ...]
    end: int

    @property
    def accessor(self) -> str:
        """The function that gives a block its copy: what it declares shared is one for all that call it."""
        shared, whole = f"{self.name}{_SUFFIX}", "".join(f"[{n}]" for n in self.extents)
        if len(self.extents) == 1:
            head, result, declared = "", f"{self.type} *", f"{self.type} table{whole}"
        else:
            head, result = f"struct {shared}_table {{ {self.type} at{whole}; }};\n", f"{shared}_table &"
            declared = f"{shared}_table table"
        return (
            f"\n{head}__device__ __forceinline__ {result}{shared}() {{\n  __shared__ {declared};\n  return table;\n}}\n"
        )

    @property
    def copy(self) -> str:
        """The copy, as an array."""
        return f"{self.name}{_SUFFIX}()" + (".at" if len(self.extents) > 1 else "")

    def copied(self, at: str) -> str:
        """The statement with which the threads of a block copy it. ``at``: a name for the place."""
        count, first = math.prod(self.extents), "[0]" * len(self.extents)
        return (
            f"  for (int {at} = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; {at} < {count};\n"
            f"       {at} += blockDim.x * blockDim.y * blockDim.z)\n"
            f"    (&{self.copy}{first})[{at}] = (&{self.name}{first})[{at}];\n"
        )


@dataclass(frozen=True, slots=True)
class SharedTables:
    """All tables of the file at once, and small buffers one at a time."""

    name: str = "shared-tables"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "bandwidth", "compute"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels that look up small arrays of the file, at places that no literal gives, and write to none; and
        those that look up small buffers, at places that data decides."""
        for target in targets(subject):
            if _tables(target.source, target.kernel.name):
                yield Move(self.name, target.region, (), _GAIN)
            for table in argument_tables(target, keep_launch=subject.keep_launch):
                yield Move(self.name, target.region, (("of", table.param.name),), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose blocks keep the tables."""
        target, old = target_of(subject, move), subject.candidate
        of = dict(move.params).get("of")
        if of is not None:
            found = argument_tables(target, keep_launch=subject.keep_launch)
            return with_copy(target, move, next(t for t in found if t.param.name == of))
        return replace(old, source=_with_copies(target), actions=(*old.actions, move.name))


@lru_cache(maxsize=64)
def _tables(source: str, kernel: str) -> tuple[Table, ...]:
    """The tables that a kernel, or a function that only it reaches, looks up; none where they are too large."""
    if "__constant__" not in source and "__device__" not in source:
        return ()
    items = list(flat(parse_items(source, strict=False)))
    reached, others = _reached(items, {kernel}), _reached(items, _kernels(items) - {kernel})
    found = []
    for table in _declared(source, items):
        using = [i for i in items if i.kind != "prototype" and table.name in i.uses and table.name not in i.names]
        known = all(i.kind == "function" and i in reached and i not in others for i in using)
        if not known or f"{table.name}{_SUFFIX}" in words(source):
            continue
        uses = [use for i in using for use in _uses(source[i.start : i.end], table)]
        if all(uses) and any(_looked_up(index) for index in uses if index):
            found.append(table)
    size = sum(math.prod(t.extents) * (element_bytes(resolved(t.type, aliases(source))) or 0) for t in found)
    return tuple(found) if size <= MOST_BYTES else ()


def _kernels(items: Sequence[Item]) -> set[str]:
    marks = standing_for(items, _KERNEL)
    return {name for i in items if i.kind == "function" and marks & i.head for name in i.names}


def _reached(items: Sequence[Item], names: set[str]) -> list[Item]:
    """The functions of these names, and those that they call."""
    functions = [i for i in items if i.kind == "function"]
    found, size = set(names), -1
    while size != len(found):
        size = len(found)
        for i in functions:
            if set(i.names) & found:
                found |= {n for f in functions for n in f.names if n in i.uses}
    return [i for i in functions if set(i.names) & found]


def _declared(source: str, items: Sequence[Item]) -> Iterator[Table]:
    """Arrays of numbers whose extents are numbers, each alone in its declaration."""
    marks = standing_for(items, _CONSTANT | _DEVICE)
    for item in items:
        if item.kind != "variable" or not marks & item.head or len(item.names) != 1 or item.names[0] not in item.head:
            continue
        tokens = [t for t in tokenize(source[item.start : item.end]) if t.kind != "directive"]
        parts = list(split_commas(tokens))
        texts = [t.text for t in parts[0]]
        if (len(parts) > 1 and "{" not in texts) or item.names[0] not in texts:
            continue
        at = texts.index(item.names[0])
        type_ = spelt([t for t in tokens[:at] if t.text not in marks | _QUALIFIERS])
        extents, after = list[int](), at + 1
        while after + 2 < len(texts) and texts[after] == "[" and texts[after + 1].isdigit() and texts[after + 2] == "]":
            extents.append(int(texts[after + 1]))
            after += 3
        plain = after < len(tokens) and tokens[after].text in ("=", "{", ";")
        if plain and extents and math.prod(extents) >= FEWEST and element_bytes(resolved(type_, aliases(source))):
            yield Table(item.names[0], type_, tuple(extents), item.end)


def _uses(text: str, table: Table) -> Iterator[Sequence[Token]]:
    """The tokens of the first index of each element that a function reads; empty for a use that is no such reading."""
    tokens = tokenize(text)
    for at, token in enumerate(tokens):
        if token.text != table.name or token.kind != "name":
            continue
        found = _indices(tokens, at, len(table.extents))
        if found is None or _is_declared_or_taken(tokens[max(at - 2, 0) : at]):
            yield []
        else:
            index, close = found
            yield [] if _writes([t.text for t in tokens[close + 1 : close + 4]]) else index


def _indices(tokens: Sequence[Token], at: int, count: int) -> tuple[list[Token], int] | None:
    """The tokens of so many subscripts behind a name, and where the last one closes; None where there are fewer."""
    index = list[Token]()
    for _ in range(count):
        end = close_of(tokens, at + 1) if at + 1 < len(tokens) and tokens[at + 1].text == "[" else None
        if end is None:
            return None
        index += tokens[at + 2 : end]
        at = end
    return index, at


def _is_declared_or_taken(before: Sequence[Token]) -> bool:
    """Whether a name behind these tokens is one that the function declares, a member, or has its address taken."""
    last = before[-1] if before else None
    if last is None or last.text in (".", "->", "::"):
        return True
    if last.kind == "name":
        return last.text not in _BEFORE_VALUES
    operand = len(before) > 1 and (before[0].kind in ("name", "number") or before[0].text in (")", "]"))
    return last.text in ("++", "--") or (last.text == "&" and not operand)


def _writes(after: Sequence[str]) -> bool:
    """Whether the three tokens behind an element assign to it."""
    first, second, third = (*after, "", "", "")[:3]
    if first in ("<", ">"):
        return second == first and third == "="
    steps = first in ("+", "-") and second == first
    return steps or (first == "=" and second != "=") or (first in tuple("+-*/%&|^") and second == "=")


def _looked_up(index: Sequence[Token]) -> bool:
    """Whether an index is no mere number."""
    return any(t.kind == "name" for t in index)


def _with_copies(target: Target) -> str:
    """The source whose kernel fills the copies first, and whose functions read them."""
    tables = _tables(target.source, target.kernel.name)
    source, copies = target.source, {t.name: t.copy for t in tables}
    items = list(flat(parse_items(source, strict=False)))
    edits = list[tuple[int, int, str]]()
    for item in items:
        if item.kind != "function" or not copies.keys() & item.uses or item.body is None:
            continue
        inside = tokenize(source[item.body : item.end])
        edits += [
            (item.body + t.start, item.body + t.start + len(t.text), copies[t.text])
            for t in inside
            if t.kind == "name" and t.text in copies
        ]
    edits += [(t.end, t.end, t.accessor) for t in tables]
    body = next(i.body for i in items if i.kind == "function" and target.kernel.name in i.names)
    assert body is not None
    lines = "".join(t.copied(fresh("at", target.names)) for t in tables)
    edits.append((body + 1, body + 1, f"\n{lines}  __syncthreads();\n"))
    for start, end, text in sorted(edits, reverse=True):
        source = source[:start] + text + source[end:]
    return source
