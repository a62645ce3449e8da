"""Branches that data decides in a function of LLVM's text, and what they choose."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from fsr.backends.host.control_flow import EXIT, arriving, meeting_points

LABEL = re.compile(r"^([\w.$-]+):")
_ENTRY = "entry"  # the first block, which has no label


@dataclass(frozen=True)
class Flow:
    """``blocks``: that of each line; ``successors``: the blocks that may follow each; ``deciding``: branches on data,
    by line and block; ``meeting``: where the ways of each block's branch meet, where there are such branches."""

    blocks: Sequence[str]
    successors: Mapping[str, Sequence[str]]
    deciding: Sequence[tuple[int, str]]
    meeting: Mapping[str, str]

    def chosen(self, rows: Sequence[re.Match[str] | None], types: Container[str]) -> set[str]:
        """Values that are one thing or another where the ways of a branch on data meet, though no data took part in
        any of them: the place of the best so far. ``rows``: of each line the value, the operation and the rest."""
        ways: dict[str, list[set[str]]] = {}
        for _, block in self.deciding:
            target = self.meeting[block]
            if target != EXIT:
                ways.setdefault(target, []).append(arriving(self.successors, block, target))
        made = {row[1]: f"{row[2]} {row[3]}" for row in rows if row is not None}
        found = set[str]()
        for block, row in zip(self.blocks, rows, strict=True):
            if row is None or row[2] != "phi" or block not in ways:
                continue
            type_ = re.search(r"(\S+) \[", row[3])
            if type_ is None or type_[1] not in types:
                continue
            values = {
                before if before in self.successors else _ENTRY: made.get(value, value)
                for value, before in re.findall(r"\[ (.+?), %([\w.$-]+) \]", row[3])
            }
            if any(len({values[b] for b in known if b in values}) > 1 for known in ways[block]):
                found.add(row[1])
        return found


def flow_of(body: Sequence[str], tainted: Container[str]) -> Flow:
    """The flow of a function's lines. ``tainted``: values that data takes part in."""
    blocks, current, successors = list[str](), _ENTRY, dict[str, list[str]]()
    deciding: list[tuple[int, str]] = []
    for number, line in enumerate(body):
        if label := LABEL.match(line):
            current = label[1]
        blocks.append(current)
        successors.setdefault(current, [])
        word = line.strip().split(" ", 1)[0]
        if word in ("br", "switch"):
            successors[current] = re.findall(r"label %([\w.$-]+)", line)
            condition = re.match(r"\s*(?:br i1|switch i\d+) (%[\w.$-]+),", line)
            if condition and condition[1] in tainted:
                deciding.append((number, current))
    return Flow(blocks, successors, deciding, meeting_points(successors) if deciding else {})
