"""What a person sees of ``fsr generate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsr.report.words import counts_text, duration_text, time_text


def suggestion_line(told: Mapping[str, Any]) -> str:
    """One suggestion with its mark."""
    if told["time_ns"] is not None:
        return f"suggestion {told['number']}: right, {time_text(told['time_ns'])}"
    return f"suggestion {told['number']}: {told['mark']}" + (f" ({told['why']})" if told["why"] else "")


def generated_summary(result: Mapping[str, Any]) -> str:
    """The summary at the end."""
    marks = [one["mark"] for one in result["suggestions"]]
    right = f"{marks.count('right')} of {len(marks)} suggestions right"
    if result["status"] == "generated":
        lines = [f"generated: {result['entry']} takes {time_text(result['best_ns'])} ({result['basis']}); {right}"]
    else:
        lines = [f"failed: no kernel for {result['entry']}; {right}"]
    lines.append(f"  model       {result['model']}: proficiency {result['score']:g} of 1 ({result['level']})")
    if result["refused"]:
        lines.append(f"  no code     {counts_text(result['refused'])}")
    cost = "" if result["dollars"] is None else f", {result['dollars']:.4g} dollars"
    lines.append(f"  asked       {result['questions']} times, {result['tokens_out']} tokens written{cost}")
    lines.append(f"  took        {duration_text(result['seconds'])}")
    if result["output"]:
        lines += [f"  written     {result['output']}", f"  next        fsr refine {result['output']}"]
    return "\n".join(lines)
