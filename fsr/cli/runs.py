"""``fsr runs``: past runs, and those that go on now."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fsr.cli.group import Group
from fsr.cli.options import json_option
from fsr.cli.report import report_command
from fsr.errors import StorageError
from fsr.records import Json
from fsr.runs.log import of_this_version, run_folder
from fsr.runs.record import RunRecord, records
from fsr.settings import read_settings


@click.group("runs", cls=Group)
def runs_command() -> None:
    """List, show and steer runs."""


def _record(run: str) -> RunRecord:
    return RunRecord.named(run, Path(read_settings().runs))


@runs_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """All runs, newest first: how each ended, or how far it is."""
    folder = Path(read_settings().runs)
    rows = []
    for record in records(folder):
        standing = record.standing()
        status = standing.split()[0].rstrip(",") if standing.startswith(("improved", "unchanged")) else None
        rows.append({"run": record.name, "ended": standing, "status": status})
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
    from fsr.report.terminal import summary

    record = _record(run)
    if as_json:
        events, going_on = len(record.events), record.going_on
        click.echo(json.dumps({"run": run, "events": events, "going_on": going_on, "result": record.result}))
    elif record.result is not None:
        with of_this_version(record.folder):
            told = summary(record.result)
        click.echo(told)
    elif record.going_on:
        click.echo(f"{run}: {record.standing()}; fsr runs stop {run} ends it")
    else:
        click.echo(f"{run}: {record.standing()}; go on with fsr refine --resume {run}")


@runs_command.command("stop")
@click.argument("run")
def stop_command(run: str) -> None:
    """End the search of a run that goes on, in whatever process; its best so far is judged and written."""
    _record(run).stop()
    click.echo(f"{run}: asked to stop")


@runs_command.command("pause")
@click.argument("run")
def pause_command(run: str) -> None:
    """Have a run begin nothing new and leave its GPU to others; its clock stands still meanwhile."""
    _record(run).pause()
    click.echo(f"{run}: asked to pause; fsr runs continue {run} ends the pause")


@runs_command.command("continue")
@click.argument("run")
def continue_command(run: str) -> None:
    """End the pause of a run."""
    _record(run).go_on()
    click.echo(f"{run}: asked to go on")


@runs_command.command("export")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(["sft", "grpo"]), default="grpo", show_default=True, help="Of the rows."
)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Where the JSON Lines go.")
def export_command(runs: tuple[str, ...], form: str, out: Path) -> None:
    """Write what models were asked in RUNs, what they answered and what it was worth, for training.

    sft: conversations that led to something right and faster; grpo: every answer with its reward."""
    from fsr.app.trajectories import SCHEMA_PATH, trajectories, write_jsonl

    rows: list[dict[str, Json]] = []
    for run in runs:
        folder = run_folder(Path(read_settings().runs), run)
        with of_this_version(folder):
            rows += trajectories(folder, form)
    try:
        count = write_jsonl(iter(rows), out)
    except OSError as fault:
        raise StorageError(
            f"the rows cannot be written: {fault.strerror}", where=str(out), fix="name another place with -o"
        ) from None
    click.echo(f"{out}: {count} rows; schema: {SCHEMA_PATH}")


runs_command.add_command(report_command)
