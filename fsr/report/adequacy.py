"""What a person reads of an adequacy measurement: the score, survivors with their diff, what is taken as equivalent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 12  # survivors with their diff


def adequacy_summary(result: Mapping[str, Any]) -> str:
    """The whole, in lines."""
    score = "no mutant was judged" if result["score"] is None else f"{100 * result['score']:.1f} % of the mutants die"
    lines = [
        f"{result['status']}: {score}",
        f"  {result['mutants']} mutants of {result['operators']} operators: {result['killed']} killed, "
        f"{result['survived']} survived, {result['equivalent']} equivalent as far as seen, "
        f"{result['not_compiled']} not compiled",
    ]
    if result["added_cases"]:
        lines.append(f"  {result['added_cases']} died in cases that were added for them")
    if result.get("failure"):
        lines.append(f"  the candidate itself is wrong: {result['failure']}")
    if result["note"]:
        lines.append(f"  note: {result['note']}")
    for one in result["survivors"][:SHOWN]:
        lines += [f"survived {one['name']}: {one['why']}", *(f"    {line}" for line in one["diff"].splitlines())]
    if len(result["survivors"]) > SHOWN:
        lines.append(f"and {len(result['survivors']) - SHOWN} more: --json names them all")
    lines += [f"equivalent as far as seen {one['name']}: {one['why']}" for one in result["equivalents"]]
    return "\n".join(lines)
