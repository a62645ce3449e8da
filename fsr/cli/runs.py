"""``fsr runs``: past runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fsr.cli.options import json_option
from fsr.errors import FsrError
from fsr.report.words import ratio_text
from fsr.runs.log import read_events
from fsr.settings import read_settings


@click.group("runs")
def runs_command() -> None:
    """List and show past runs."""


@runs_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """All runs, newest first: how each ended."""
    folder = Path(read_settings().runs)
    names = sorted((p.name for p in folder.iterdir() if p.is_dir()), reverse=True) if folder.is_dir() else []
    rows = [{"run": name, **_ending(folder / name)} for name in names]
    if as_json:
        click.echo(json.dumps({"runs": rows}))
        return
    if not rows:
        click.echo(f"no runs in {folder}")
    for row in rows:
        click.echo(f"{row['run']:<48} {row['ended']}")


@runs_command.command("show")
@click.argument("run")
@json_option
def show_command(run: str, as_json: bool) -> None:
    """One run: its result, or how far it came."""
    folder = Path(read_settings().runs) / run
    events = list(read_events(folder))
    result = next((e["result"] for e in reversed(events) if e["kind"] == "end"), None)
    if as_json:
        click.echo(json.dumps({"run": run, "events": len(events), "result": result}))
    elif result is None:
        told = sum(e["kind"] == "tell" for e in events)
        click.echo(f"{run}: cut off after {told} outcomes; go on with fsr refine --resume {run}")
    else:
        from fsr.report.terminal import summary

        click.echo(summary(result))


def _ending(folder: Path) -> dict[str, Any]:
    told, result = 0, None
    try:
        for event in read_events(folder):
            told += event["kind"] == "tell"
            result = event["result"] if event["kind"] == "end" else result
    except FsrError as fault:  # one bad run hides no other
        return {"ended": fault.what, "status": None}
    if result is None:
        return {"ended": f"cut off after {told} outcomes", "status": None}
    speed = f" {ratio_text(result['best']['speedup'])} ({result['basis']})" if result["best"] else ""
    return {"ended": f"{result['status']}{speed}, {result['evaluated']} evaluated", "status": result["status"]}
