"""Puts back together what the CPU's compiler takes apart: one float4 access of a lane arrives as four of a float.

Only accesses on lines that deal in vector types are joined, since a GPU's compiler never joins scalar ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SCALARS = {
    "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8, "longlong": 8,
    "ulonglong": 8, "float": 4, "double": 8,
}  # fmt: skip
_TYPE = re.compile(rf"\b({'|'.join(_SCALARS)})([24])\b")
_DECLARED = re.compile(rf"\b({'|'.join(_SCALARS)})([24])\b[\s*&]*(?:const\b|__restrict__\b|\*|&|\s)*([A-Za-z_]\w*)")
_ALIGNED = re.compile(r"\b(?:alignas|__align__)\s*\((?:[^()]|\([^()]*\))*\)\s*([A-Za-z_]\w*)")
_WORDS = _SCALARS | {
    "half": 2, "__half": 2, "__nv_bfloat16": 2, "bool": 1, "uint8_t": 1, "int8_t": 1, "uint16_t": 2, "int16_t": 2,
    "uint32_t": 4, "int32_t": 4,
}  # fmt: skip
_COUNTED = (
    "requests", "lanes", "sectors", "unique_sectors", "wavefronts", "serial", "max_same", "block_sectors", "lines",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One site of the recorder: where, what, and its counts (``first_address`` and those of _COUNTED)."""

    line: int
    space: str
    kind: str
    bytes: int
    buffer: str
    counts: Mapping[str, Any]


def vector_sizes(source: str) -> dict[int, int]:
    """For each line (1-based) that names a vector type, a pack with an alignment of its own, or a variable declared
    with a vector type: the widest such type's bytes (16 at most)."""
    declared = {found[3]: _size(found[1], found[2]) for found in _DECLARED.finditer(source)}
    packs, sizes = _packs(source), {}
    for number, text in enumerate(source.splitlines(), 1):
        used = [_size(found[1], found[2]) for found in _TYPE.finditer(text)]
        used += [_size(found[1].split()[-1], found[2]) for found in packs.finditer(text)] if packs else []
        used += [declared[word] for word in re.findall(r"[A-Za-z_]\w*", text) if word in declared]
        if used:
            sizes[number] = max(used)
    return sizes


def _packs(source: str) -> re.Pattern[str] | None:
    """Templates of an element and a count that the source declares with an alignment of its own: ``pack<float, 4>``."""
    names = "|".join(sorted({found[1] for found in _ALIGNED.finditer(source)}))
    scalars = "|".join(_WORDS)
    return re.compile(rf"\b(?:{names})<\s*((?:(?:un)?signed )?(?:{scalars}))\s*,\s*(\d+)\s*>") if names else None


def _size(scalar: str, count: str) -> int:
    return min(_WORDS[scalar] * int(count), 16)


def merge_wide(rows: Sequence[Row], sizes: Mapping[int, int]) -> list[Row]:
    """Rows of one line, buffer and kind that ran equally often on neighbouring addresses become one row of up to
    the line's vector size; each of them touched the same sectors, so the largest of their counts stands."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    merged = []
    for row in rows:
        whole = sizes.get(row.line, 0)
        if row.bytes < whole and row.kind != "atomic":
            counts = row.counts
            key = (row.line, row.space, row.kind, row.bytes, row.buffer, counts["requests"], counts["lanes"])
            groups[key].append(row)
        else:
            merged.append(row)
    for group in groups.values():
        merged += _chain(sorted(group, key=lambda row: int(row.counts["first_address"])), sizes[group[0].line])
    return merged


def _chain(group: list[Row], whole: int) -> list[Row]:
    result, at = [], 0
    while at < len(group):
        part = group[at].bytes
        start = int(group[at].counts["first_address"])
        wanted = [start + part * i for i in range(whole // part)]
        run = group[at : at + len(wanted)]
        if start % whole == 0 and [int(row.counts["first_address"]) for row in run] == wanted:
            counts = {name: max(row.counts[name] for row in run) for name in _COUNTED}
            counts["first_address"] = start
            result.append(Row(run[0].line, run[0].space, run[0].kind, whole, run[0].buffer, counts))
            at += len(run)
        else:
            result.append(group[at])
            at += 1
    return result
