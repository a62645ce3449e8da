"""What a person sees: live progress on standard error, and the summary at the end.

A display takes anything with the attributes of :class:`fsr.runs.state.RunState`; it imports nothing above it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fsr.report.failing import failure_lines
from fsr.report.words import (
    bottleneck_text,
    defect_text,
    duration_text,
    model_text,
    ratio_text,
    rejected_text,
    roofline_text,
    time_text,
)

REFRESH_S = 0.25
PLAIN_EVERY_S = 10.0
SURVIVORS = 5  # named in a summary
SHOWN_KERNELS = 4  # of a plan, the same
EVIDENCE_ROWS, PLAIN_COLUMNS = 4, 60  # that one line of evidence takes at most, and how wide they are in a pipe


class Shown(Protocol):
    """What the display reads of a run."""

    run: str
    entry: str
    budget_s: float
    phase: str
    elapsed_s: float
    told: int
    device_busy: float
    baseline: Any
    best: Any
    shares: Mapping[str, Any]

    @property
    def rejected(self) -> dict[str, int]: ...
    @property
    def rate(self) -> float: ...
    @property
    def speedup(self) -> float | None: ...


class Display:
    """Live progress on standard error: a table in a terminal, a line now and then otherwise."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._live: Live | None = None
        self._last = 0.0
        self._phase = ""

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, state: Shown) -> None:
        """Show a run as it is now; cheap when called often."""
        now = time.monotonic()
        every = REFRESH_S if self._live is not None else PLAIN_EVERY_S
        if now - self._last < every and state.phase == self._phase:
            return
        self._last, self._phase = now, state.phase
        if self._live is not None:
            self._live.update(progress_table(state))
        else:
            print(progress_line(state), file=sys.stderr, flush=True)


@contextmanager
def waiting(words: str, console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """Says on standard error what takes its time and for how long it has: in a terminal, where nothing is left of it;
    otherwise a line every :data:`PLAIN_EVERY_S`. What it gives is called with other words as the work goes on."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        with _lines_of(words) as tell:
            yield tell
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(words)
        yield lambda told: progress.update(task, description=told)


@contextmanager
def _lines_of(words: str) -> Iterator[Callable[[str], None]]:
    started, ended, said = time.monotonic(), threading.Event(), [words]

    def lines() -> None:
        while not ended.wait(PLAIN_EVERY_S):
            print(f"fsr: {said[-1]}, {duration_text(time.monotonic() - started)}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=lines, name="waiting", daemon=True)
    thread.start()
    try:
        yield said.append
    finally:
        ended.set()
        thread.join()


def progress_line(state: Shown) -> str:
    """The run in one line."""
    parts = [f"fsr: {state.entry}: {state.phase}", duration_text(state.elapsed_s)]
    if state.speedup is not None:
        parts.append(f"best {ratio_text(state.speedup)} ({basis_of(state)}), {state.told} evaluated")
    return ", ".join(parts)


def basis_of(state: Shown) -> str:
    """'measured' or 'predicted'."""
    return str(state.baseline.outcome.timing.basis.value)


def progress_table(state: Shown) -> Table:
    """The run as a table."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    left = max(0.0, state.budget_s - state.elapsed_s)
    table.add_row("kernel", f"{state.entry}   [dim]run {state.run}[/dim]")
    table.add_row("phase", f"{state.phase}, {duration_text(left)} left")
    if state.baseline is None:
        table.add_row("", "testing and timing the original")
        return table
    basis = basis_of(state)
    table.add_row("original", f"{time_text(state.baseline.outcome.timing.median_ns)} ({basis})")
    if state.best is not None and state.speedup is not None and state.best.time_ns:
        spread = spread_of(state.best.outcome.timing.samples_ns)
        table.add_row(
            "best so far", f"{time_text(state.best.time_ns)}  [bold]{ratio_text(state.speedup)}[/bold] {spread}"
        )
        table.add_row("by", " → ".join(state.best.proposal.candidate.actions) or "the original")
    rejected = rejected_text(state.rejected)
    table.add_row("evaluated", f"{state.told} ({state.rate:.1f} a second)")
    table.add_row("rejected", rejected or "none")
    if len(state.shares) > 1:
        shares = [f"{name} {a.proposed} ({a.right} right, {a.gains} gains)" for name, a in state.shares.items()]
        table.add_row("proposers", ", ".join(shares))
    table.add_row("device busy", f"{100 * state.device_busy:.0f} %")
    return table


def spread_of(samples: tuple[float, ...]) -> str:
    """'± 0.8 %', half the range of screening samples over their middle; '' for a single value."""
    if len(samples) < 2:
        return ""
    return f"± {50 * (max(samples) - min(samples)) / (sum(samples) / len(samples)):.1f} %"


def _subject(result: Mapping[str, Any]) -> str:
    """What a result is about: the kernel, or all that a plan of several launches."""
    kernels = list(result.get("kernels") or ())
    if len(kernels) < 2:
        return str(result["entry"])
    named = kernels if len(kernels) <= SHOWN_KERNELS else [*kernels[: SHOWN_KERNELS - 1], "more"]
    return f"the plan of {', '.join(named[:-1])} and {named[-1]}"


def summary(result: Mapping[str, Any]) -> str:
    """The end of a run, in a few lines."""
    basis, best = result["basis"], result["best"]
    where = result["device"].get("target") if basis == "predicted" else result["device"]["name"]
    lines = []
    if best is None:
        said = "nothing faster than {} was proven" if result["evaluated"] else "nothing was tried in place of {}"
        lines.append(f"unchanged: {said.format(_subject(result))} ({basis}, {where})")
        lines.append(f"  why        {result['why']}")
        lines.append(f"  original   {time_text(result['baseline']['median_ns'])}")
    else:
        low, high = best["speedup_ci95"]
        lines.append(
            f"improved: {_subject(result)} is {ratio_text(best['speedup'])} as fast [{low:.2f}, {high:.2f}] "
            f"({basis}, {where})"
        )
        lines.append(f"  original   {time_text(result['baseline']['median_ns'])}")
        lines.append(f"  winner     {time_text(best['median_ns'])}")
        if best.get("speedup_back_to_back"):
            lines.append(f"  in a loop  {ratio_text(best['speedup_back_to_back'])} when launched back to back")
        if best.get("roofline"):
            lines.append(f"  roofline   {roofline_text(best['roofline'])}")
        lines.append("  by         " + "\n             ".join(best["actions"]))
        lines += adequacy_text(best.get("adequacy") or {})
    causes = (best or result["baseline"]).get("bottlenecks") or ()
    lines += [f"  held back  {bottleneck_text(causes[0])}"] if causes else []
    tests = result["tests"]
    rejected = rejected_text(result["rejected"]) or "none"
    lines.append(f"  tests      {tests['passed']} of {tests['cases']} passed")
    lines.append(f"  evaluated  {result['evaluated']}; rejected: {rejected}")
    lines += [f"  refused    {defect_text(action, counts)}" for action, counts in result["defects"].items()]
    lines += [f"  model      {model_text(name, told)}" for name, told in result.get("models", {}).items()]
    lines += [f"  written    {path}" for path in result["files"].values()]
    lines += [f"  note       {note}" for note in result["notes"]]
    if result["interrupted"]:
        lines.append(f"  interrupted: the best so far is kept; go on with fsr refine --resume {result['run']}")
    lines.append(f"  run        {result['run']}, {duration_text(result['seconds'])}")
    return "\n".join(lines)


def adequacy_text(told: Mapping[str, Any]) -> list[str]:
    """How many of the faults planted in a winner its tests found, and by name those that they did not."""
    if not told.get("tried"):
        return []
    judged = told["killed"] + told["survived"]
    lines = [f"  adequacy   the tests find {told['killed']} of {judged} faults planted in it"]
    shown = told["survivors"][:SURVIVORS]
    lines += [f"             not found: {one['name']} ({one['why']})" for one in shown]
    rest = len(told["survivors"]) - len(shown)
    return [*lines, f"             and {rest} more: best.adequacy of --json"] if rest else lines


def _reached_text(result: Mapping[str, Any]) -> str:
    """How far tests went: where all were passed sizes, if it has any; else the stage."""
    ends = dict(result.get("sizes") or {})
    if result["status"] != "passed":
        return f"stage {result['stage']}"
    if not ends:
        return "every stage"
    sizes = ", ".join(f"{name} = {low}" + f" to {high}" * (low != high) for name, (low, high) in ends.items())
    if result["timed_sizes"]:
        return f"at {sizes} (timed sizes included)"
    if result.get("timed_blocks"):
        return f"at {sizes} (at the timed sizes some blocks: a whole launch takes too long on this device)"
    return f"at {sizes}"


def _untested_lines(result: Mapping[str, Any]) -> list[str]:
    """What of the timed sizes no test ran at, and why, on a line of its own."""
    if result["status"] != "passed" or not result.get("sizes") or result["timed_sizes"] or result.get("timed_blocks"):
        return []
    left = dict(result.get("timed_left") or {})
    by_reason = dict[str, list[str]]()
    for one, why in zip(left.get("sizes", ()), left.get("why", ()), strict=True):
        by_reason.setdefault(why, []).append(", ".join(f"{name} = {value}" for name, value in one.items()))
    if len(by_reason) < 2 and left.get("all", True):
        return [f"  not tested: the timed sizes{_whys(why, every)}" for why, every in by_reason.items()]
    return [f"  not tested: of the timed sizes{_whys(why, every)}" for why, every in by_reason.items()]


def _whys(why: str, sizes: Sequence[str]) -> str:
    """Sizes, and why no test ran at them."""
    return f" {'; '.join(sizes)}".rstrip() + (f": {why}; a GPU runs them whole" if why else "")


def _shortened(line: str) -> str:
    """Evidence may be all that a compiler said: cut between words, with a word on where the rest is."""
    most = EVIDENCE_ROWS * (os.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_COLUMNS)
    if len(line) <= most:
        return line
    kept = line[:most].rpartition(" ")[0].rstrip() or line[:most]
    return f"{kept} ... (--json has all of it)"


def check_summary(result: Mapping[str, Any]) -> str:
    """The end of a check, in a few lines."""
    tests = result["tests"]
    lines = [f"{result['status']}: {tests['passed']} of {tests['cases']} cases, {_reached_text(result)}"]
    lines += _untested_lines(result)
    if result["status"] != "passed":
        lines += [_shortened(line) for line in failure_lines(result["evidence"])]
    elif result["evidence"].get("launch"):
        lines.append("  fails under the kernel's own launch; passes under this one (say it at the top of its file):")
        lines += [f"  {line}" for line in str(result["evidence"]["launch"]).splitlines()]
    if result.get("verdict"):
        verdict = result["verdict"]
        low, high = verdict["ci95"]
        lines.append(
            f"  {verdict['kind']}: {ratio_text(verdict['speedup'])} [{low:.2f}, {high:.2f}] ({verdict['basis']})"
        )
    lines += [f"  note: {note}" for note in result.get("notes", ())]
    return "\n".join(lines)
