"""compute-sanitizer over one run of a plan, in a process of its own, and its report as faults."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fsr.backends.backend import ToolReport
from fsr.backends.cuda.watching import find_tool, watch_replay
from fsr.backends.protocol import Buffer
from fsr.errors import HarnessError
from fsr.records import ConcreteLaunch, Fault, FaultKind, Image

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_EXIT_FOUND = 77  # what compute-sanitizer ends with when it found something
_MAX_FAULTS = 20

_KINDS = (
    (re.compile(r"Invalid __(global|shared|local)__ (read|write|atomic)"), FaultKind.OUT_OF_BOUNDS),
    (re.compile(r"Address .* (is out of bounds|is misaligned)"), FaultKind.OUT_OF_BOUNDS),
    (re.compile(r"(Potential )?(RAW|WAR|WAW) hazard|Race reported", re.IGNORECASE), FaultKind.RACE),
    (re.compile(r"Uninitialized __(global|shared|local)__ memory read"), FaultKind.UNINITIALISED),
    (re.compile(r"Barrier error|Divergent thread"), FaultKind.DIVERGENT_BARRIER),
    (re.compile(r"Program hit \w+|Misaligned|Illegal instruction|trap", re.IGNORECASE), FaultKind.CRASH),
)
_PLACE = re.compile(r"candidate\.cu:(\d+)")
_NOT_USABLE = re.compile(r"Device not supported|not supported on this|Unable to (?:find|load)|insufficient permission")


def find_sanitizer() -> str | None:
    """The compute-sanitizer program: on the path, or under CUDA_HOME or /usr/local/cuda."""
    return find_tool("compute-sanitizer", "compute-sanitizer")


def sanitize(
    image: Image,
    launches: Sequence[ConcreteLaunch],
    buffers: Sequence[Buffer],
    *,
    tools: Sequence[str] = TOOLS,
    timeout_s: float = 60.0,
    index: int = 0,
) -> list[ToolReport]:
    """Run the plan once under each tool, all at once on GPU ``index``. Compile the image with
    ``instrumented=True`` to have source lines in the faults. ``timeout_s`` is for each tool; a tool that does not
    finish in it is reported with a fault of kind 'hang'."""
    program = find_sanitizer()
    if program is None:
        note = "compute-sanitizer is not installed (it comes with the CUDA toolkit)"
        return [ToolReport(tool, False, note=note) for tool in tools]
    from fsr.backends.cuda.replay import write_replay

    with tempfile.TemporaryDirectory(prefix="fsr-sanitizer-") as name:
        write_replay(Path(name), image, launches, buffers)
        with ThreadPoolExecutor(len(tools)) as at_once:  # each spends most of its time starting, on a core of its own
            return list(at_once.map(lambda tool: _run_tool(program, tool, Path(name), timeout_s, index), tools))


def _run_tool(program: str, tool: str, folder: Path, timeout_s: float, index: int) -> ToolReport:
    command = [
        program, f"--tool={tool}", f"--error-exitcode={_EXIT_FOUND}", f"--print-limit={_MAX_FAULTS}",
        "--report-api-errors=no",
        *(["--racecheck-report=analysis"] if tool == "racecheck" else []),
    ]  # fmt: skip
    watched = watch_replay(command, folder, index, timeout_s)
    if watched.code is None:
        return ToolReport(tool, True, (Fault(FaultKind.HANG, f"{tool}: not finished after {timeout_s:g} s"),))
    return read_report(tool, watched.output, watched.code)


def read_report(tool: str, output: str, code: int) -> ToolReport:
    """compute-sanitizer's text and exit status as a report. Raises HarnessError when the replay itself failed."""
    if match := _NOT_USABLE.search(output):
        return ToolReport(tool, False, note=f"compute-sanitizer cannot work here: {match[0]}")
    faults = tuple(parse_faults(output))
    if faults or code == 0:
        return ToolReport(tool, True, faults)
    if code == _EXIT_FOUND:
        return ToolReport(tool, True, (Fault(FaultKind.SANITIZER, _tail(output)),))
    raise HarnessError(f"the run under {tool} ended with {code}: {_tail(output)}", where="fsr.backends.cuda.sanitizer")


def parse_faults(output: str) -> list[Fault]:
    """The distinct faults in a report: kind, the headline with what follows it, the line in the candidate."""
    faults: dict[tuple[str, int | None, str], Fault] = {}
    lines = [re.sub(r"^=+ ?", "", line) for line in output.splitlines() if line.startswith("=====")]
    for number, line in enumerate(lines):
        kind = next((kind for pattern, kind in _KINDS if pattern.search(line)), None)
        if kind is None or line.startswith(" "):  # indented lines belong to the headline before them
            continue
        details = [line.strip()]
        for detail in lines[number + 1 : number + 6]:
            if not detail.startswith(" "):
                break
            details.append(detail.strip())
        text = "; ".join(details)
        place = _PLACE.search(text)
        at = int(place[1]) if place else None
        headline = re.sub(r"0x[0-9a-fA-F]+|\d+", "#", line)
        faults.setdefault((kind, at, headline), Fault(kind, text[:600], at))
    return list(faults.values())


def _tail(output: str) -> str:
    return " / ".join(line.strip() for line in output.strip().splitlines()[-6:])[:800]
