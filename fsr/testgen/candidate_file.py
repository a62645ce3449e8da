"""Candidates in files: a .cu whose first comment lines say how it is launched.

    // attacks: softmax            any key: value lines, kept as notes
    // grid: ceil_div(rows, 8)     up to three parts, separated by |
    // block: 32 8
    // shared: 4 * cols
    // entry: gemm<16>
    // args: x y rows cols mark    contract arguments and scratch, in the kernel's order
    // scratch: mark int32 rows    name, dtype, count, and 'zeroed' where it is; may come several times
    // launch: entry | grid | block | shared | args     instead of the above, once for each launch of a plan

Whatever is not said is as in the contract's own plan. In ``launch`` lines, grid and block separate their parts with
spaces outside parentheses, and ``int32=EXPRESSION`` is a scalar of the launch's own.
"""

from __future__ import annotations

import re
from pathlib import Path

from fsr.contract.model import Contract
from fsr.errors import UsageError
from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch

_LINE = re.compile(r"//\s*([a-z][a-z ]*):\s*(.+?)\s*$")
Notes = dict[str, list[str]]


def read_notes(path: Path) -> Notes:
    """The ``// key: value`` lines at the top of a file, all values of a key in order."""
    notes: Notes = {}
    for line in path.read_text().splitlines():
        match = _LINE.match(line)
        if match:
            notes.setdefault(match[1], []).append(match[2])
        elif not line.startswith("//"):
            break
    return notes


def read_candidate(path: Path, contract: Contract) -> Candidate:
    """The candidate of a file, its plan completed from the contract's. Raises UsageError on a malformed line."""
    notes = read_notes(path)
    base = contract.plan.launches[0]
    try:
        scratch = tuple(_scratch(text) for text in notes.get("scratch", []))
        if "launch" in notes:
            launches = tuple(_launch(text) for text in notes["launch"])
        else:
            launches = (
                Launch(
                    notes.get("entry", [base.entry])[0],
                    _dims(notes["grid"][0]) if "grid" in notes else base.grid,
                    _dims(notes["block"][0]) if "block" in notes else base.block,
                    notes.get("shared", [base.shared_bytes])[0],
                    tuple(notes["args"][0].split()) if "args" in notes else base.args,
                ),
            )
    except (ValueError, IndexError) as fault:
        raise UsageError(
            f"the launch of this candidate cannot be read: {fault}",
            expected="// grid:, // block:, // shared:, // args:, // scratch: or // launch: lines",
            where=str(path),
            fix="correct the comment lines at its top",
        ) from None
    flags = tuple(notes.get("flags", [""])[0].split())
    return Candidate(path.read_text(), Plan(launches, scratch, flags))


def _scratch(text: str) -> Scratch:
    name, dtype, rest = text.split(None, 2)
    zeroed = rest.endswith(" zeroed")
    return Scratch(name, dtype, rest.removesuffix(" zeroed"), zeroed)


def _launch(text: str) -> Launch:
    entry, grid, block, shared, args = (part.strip() for part in text.split("|"))
    names: list[str | ScalarArgument] = []
    for word in _words(args):
        dtype, equals, value = word.partition("=")
        names.append(ScalarArgument(dtype, value) if equals else word)
    return Launch(entry, _dims(" | ".join(_words(grid))), _dims(block), shared, tuple(names))


def _words(text: str) -> list[str]:
    """Split at blanks outside parentheses."""
    return re.findall(r"(?:[^\s()]|\((?:[^()]|\([^()]*\))*\))+", text)


def _dims(text: str) -> tuple[str, str, str]:
    parts = [p.strip() for p in text.split("|")] if "|" in text else _words(text)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"{text!r} has {len(parts)} parts")
    x, y, z = (*parts, "1", "1")[:3]
    return x, y, z
