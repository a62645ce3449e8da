"""The output file, ``kernel.fsr.cu``: the winner in the original file's place, under a comment that accounts for it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from fsr.records import Candidate, Json, Launch
from fsr.source.cut import DeviceUnit
from fsr.source.file import KernelFile
from fsr.source.launched_structures import TakenStructures
from fsr.source.launcher import launcher_name

_WIDTH = 110


def render_output(
    file: KernelFile, unit: DeviceUnit, candidate: Candidate, evidence: Mapping[str, Json],
    taken: TakenStructures | None = None,
) -> str:  # fmt: skip
    """The original file with the winner spliced in, under a header comment.

    The header says what is replaced, for which hardware, how much faster (with its interval and whether measured
    or predicted), how it was tested and which launch it needs. ``evidence`` is the object that ``fsr refine
    --json`` prints; what it does not hold is left out. ``taken``: the structures that kernels take. Encode with
    :meth:`KernelFile.encode`.
    """
    text = file.splice(unit, candidate.source)
    newline = "\r\n" if "\r\n" in file.text else "\n"
    header = newline.join(_header(file, unit, candidate, evidence, taken or TakenStructures())) + newline
    mark, text = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    return mark + header + text


def _header(
    file: KernelFile, unit: DeviceUnit, candidate: Candidate, evidence: Mapping[str, Any], taken: TakenStructures
) -> list[str]:  # fmt: skip
    lines = [f"{unit.entry} of {file.path.name}, refined by fsr."]
    lines += [f"Hardware: {_hardware(evidence)}."] if evidence.get("device") else []
    speed = _speed(evidence)
    lines += [speed] if speed else []
    lines += [_tests(evidence)] if evidence.get("tests") else []
    if candidate.actions:
        lines.append("Changed by: " + ", ".join(candidate.actions) + ".")
    lines += ["Launch: " + launch_text(launch, taken) + "." for launch in candidate.plan.launches]
    for scratch in candidate.plan.scratch:
        cleared = ", cleared before each run" if scratch.zeroed else ""
        lines.append(f"Scratch: {scratch.name}, {scratch.count} x {scratch.dtype}{cleared}.")
    if candidate.plan.flags:
        lines.append("Compile with: " + " ".join(candidate.plan.flags) + ".")
    launches = candidate.plan.launches
    if len(launches) > 1 or candidate.plan.scratch or any(launch.repeated for launch in launches):
        lines.append(f"{file.path.stem}.fsr.cuh holds {launcher_name(unit.entry)}(), which does this in one call.")
    return [part for line in lines for part in _wrapped(line)] + ["//"]


def launch_text(launch: Launch, taken: TakenStructures | None = None) -> str:
    """One launch as CUDA developers write it: ``k<<<ceil_div(n, 256), 256>>>``."""
    parts = [_dimensions(launch.grid), _dimensions(launch.block)]
    if launch.shared_bytes != "0":
        parts.append(launch.shared_bytes)
    args = [a if isinstance(a, str) else a.value for a in launch.args]
    args = args if taken is None else taken.passed(launch, args)
    text = f"{launch.entry}<<<{', '.join(parts)}>>>({', '.join(args)})"
    return f"{text}, {launch.repeat} times: step = 0, 1, 2 and on" if launch.repeated else text


def _dimensions(texts: tuple[str, str, str]) -> str:
    parts = list(texts)
    while len(parts) > 1 and parts[-1] == "1":
        parts.pop()
    return parts[0] if len(parts) == 1 else f"dim3({', '.join(parts)})"


def _hardware(evidence: Mapping[str, Any]) -> str:
    device = evidence["device"]
    if not isinstance(device, Mapping):
        return str(device)
    target = device.get("target")
    if evidence.get("basis") == "predicted" and target:
        return f"tested on {device.get('name', 'the host device')}; times predicted for {target}"
    return " ".join(str(device[k]) for k in ("name", "arch") if device.get(k))


def _speed(evidence: Mapping[str, Any]) -> str:
    best, baseline = evidence.get("best"), evidence.get("baseline")
    if not isinstance(best, Mapping) or best.get("speedup") is None:
        return ""
    text = f"Speed: {best['speedup']:.2f} x as fast"
    interval = best.get("speedup_ci95")
    if interval:
        what = "95 % interval" if evidence.get("basis") == "measured" else "the model's range is"
        text += f" ({what} {interval[0]:.2f} to {interval[1]:.2f})"
    if isinstance(baseline, Mapping) and baseline.get("median_ns") and best.get("median_ns"):
        text += f", {baseline['median_ns'] / 1000:.1f} us to {best['median_ns'] / 1000:.1f} us"
    basis = evidence.get("basis", "predicted")
    return text + (", measured." if basis == "measured" else f", {basis}: not measured on a GPU.")


def _tests(evidence: Mapping[str, Any]) -> str:
    tests = evidence["tests"]
    if not isinstance(tests, Mapping):
        return f"Tests: {tests}."
    text = f"Tests: {tests.get('passed')} of {tests.get('cases')} cases passed against the original"
    best = evidence.get("best")
    held_out = best.get("held_out") if isinstance(best, Mapping) else None
    if isinstance(held_out, Mapping) and "passed" in held_out:
        text += f", {held_out['passed']} of {held_out.get('cases', held_out['passed'])} held out from the search"
    return text + "."


def _wrapped(line: str) -> list[str]:
    """One statement as comment lines; continuation lines are indented."""
    line = line.replace("*/", "* /").replace("\\", "/")
    found = textwrap.wrap(line, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return [f"// {part}" for part in found]
