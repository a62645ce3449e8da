"""Write docs/features.md from the schema.

``python docs/generate_features.py``; with ``--check`` nothing is written, and an old page ends with 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from fsr.features import roofline
from fsr.features.schema import BOTTLENECKS, DEFINITIONS, GROUPS, VERSION, Definition

PAGE = Path(__file__).with_name("features.md")
HEAD = f"""# Features

What fsr knows of a candidate beyond its time, by where it comes from. `fsr features KERNEL` prints them for a kernel;
an outcome in a run's log holds them as JSON, `{{"version": {VERSION}, "source": {{...}}, ...}}`. A group is missing
where nobody asked for it or where it cannot be had; so is a field that its source cannot tell. Logs of earlier versions
are read; those of later ones are refused by their version. This page is written by docs/generate_features.py.

On the host device every candidate is recorded. Beside a GPU idle compile workers record the original and new elites,
and Nsight Compute (`ncu`) counts the newest best and the original in at most 5 % of the search's time: a reading takes
about 3 s on an H200, most of it the tool's own start, so that the first comes after about a minute. Where ncu is not
installed or not permitted, a note says so. The instruction mix needs `nvdisasm`: the CUDA toolkit's, or
`pip install 'fsr[sass]'`.
"""


CAUSES = """What holds a candidate back, largest share first: `name`, `share` (of the time, 0 to 1), `evidence` (what
shows it; with counters also what they say), and where one line shows it, that `line` of the candidate and its `code`.
A move that aims at the first cause is tried earlier."""


def table(group: str) -> Iterator[str]:
    """One group: what its record says, and a row a field."""
    yield f"## {group}"
    yield " ".join((GROUPS[group].__doc__ or "").split())
    counted = any(d.metric for d in DEFINITIONS if d.group == group)
    yield "\n".join(
        [f"| name | unit | range | meaning |{' Nsight Compute |' if counted else ''}",
         f"| --- | --- | --- | --- |{' --- |' if counted else ''}",
         *(row(d, counted) for d in DEFINITIONS if d.group == group)]
    )  # fmt: skip


def row(d: Definition, counted: bool) -> str:
    """One feature."""
    span = "" if d.kind == "str" else "0 and up" if math.isinf(d.most) else f"0 to {d.most:g}"
    metric = " or ".join(f"`{name}`" for name in d.metric.split(" or "))
    meaning = f"{d.meaning}, {d.over}" if d.over else d.meaning
    return f"| `{d.name}` | {d.unit} | {span} | {meaning} |{f' {metric} |' if counted else ''}"


def page() -> str:
    """The whole page."""
    parts = [HEAD.rstrip()]
    for group in GROUPS:
        parts += table(group)
        if group == "roofline":
            parts.append((roofline.__doc__ or "").partition("\n\n")[2].strip())
    causes = ["| name | means |", "| --- | --- |", *(f"| `{name}` | {words} |" for name, words in BOTTLENECKS.items())]
    parts += ["## bottlenecks", CAUSES, "\n".join(causes)]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" not in arguments:
        PAGE.write_text(text)
    elif not PAGE.is_file() or PAGE.read_text() != text:
        print(f"{PAGE} is not what the schema says; run: python docs/generate_features.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
