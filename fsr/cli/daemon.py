"""``fsr daemon``: kernels get faster while you work. All of it is in the package fsrd, loaded here."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsr.cli.group import Group
from fsr.cli.options import json_option
from fsr.errors import MissingToolError
from fsr.report.words import duration_text, number_text, ratio_text
from fsr.settings import read_settings

if TYPE_CHECKING:
    from fsrd.service.instance import Place

NEEDED = ("msgspec", "pathspec", "prometheus_client", "psutil", "starlette", "uvicorn", "watchdog")
LOG_LINES = 40
LATEST = 3  # ended jobs that the status tells of, of each kind
LOOKED = 1000  # jobs that are looked through for those
SLOTS = 100  # running jobs, one a device


@click.group("daemon", cls=Group)
def daemon_command() -> None:
    """Watch folders and refine the kernels in them while nobody needs the machine.

    Winners go to .fsr/ beside their kernel; sources are never touched. docs/daemon.md says how to configure it.
    """
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingToolError(f"the daemon needs {', '.join(missing)}", fix="pip install 'fsr[daemon]'")


def _place() -> Place:
    from fsrd.service.instance import Place

    return Place.of(read_settings())


def _ask(method: str, path: str) -> Any:
    from fsrd.control.client import ask

    return ask(_place(), method, path)


@daemon_command.command("run")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=str))
def run_command(folders: tuple[str, ...]) -> None:
    """Run in the foreground, watching FOLDERs or those of the configuration; Ctrl-C ends it."""
    from fsrd.control.start import absolute, watched
    from fsrd.main import serve

    watched(read_settings(), folders)
    serve(tuple(absolute(folders)), foreground=True)


@daemon_command.command("start")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=str))
def start_command(folders: tuple[str, ...]) -> None:
    """Start in the background, watching FOLDERs or those of the configuration; prints the address of its page."""
    from fsrd.control.start import start

    address = start(read_settings(), folders)
    click.echo(f"the daemon runs; its page: {address}" if address else "the daemon runs")


@daemon_command.command("stop")
def stop_command() -> None:
    """End it; runs that go on are resumed when it starts again."""
    from fsrd.control.start import stop

    click.echo("the daemon has ended" if stop(_place()) else "the daemon did not run")


@daemon_command.command("status")
@json_option
def status_command(as_json: bool) -> int:
    """What it watches, does and waits for; exits 1 when it does not run."""
    place = _place()
    if place.running() is None:
        click.echo(json.dumps({"running": False}) if as_json else "the daemon does not run")
        return 1
    status = {"running": True, "page": place.address.read_text() if place.address.exists() else ""}
    status |= _ask("GET", "/api/status")
    if as_json:
        click.echo(json.dumps(status))
        return 0
    jobs = {
        state: _ask("GET", f"/api/jobs?state={state}&limit={limit}")["jobs"]
        for state, limit in (("running", SLOTS), ("done", LATEST), ("failed", LOOKED))
    }
    jobs["failed"] = _standing(jobs["failed"])
    click.echo(_status_text(status, jobs))
    return 0


def _standing(failed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The failed jobs that are still somebody's concern: of kernels that are there, and have no newer job."""
    newest: dict[tuple[str, str], int] = {}
    for job in _ask("GET", f"/api/jobs?limit={LOOKED}")["jobs"]:
        newest.setdefault((job["kernel"], job["hardware"]), job["id"])
    there = [j for j in failed if newest.get((j["kernel"], j["hardware"])) == j["id"] and Path(j["kernel"]).is_file()]
    return there[:LATEST]


def _status_text(status: dict[str, Any], latest: dict[str, list[dict[str, Any]]]) -> str:
    progress = {job["id"]: job["progress"] for job in latest["running"]}
    jobs = ", ".join(f"{count} {state}" for state, count in status["jobs"].items() if count) or "none yet"
    lines = [
        f"running for {duration_text(time.time() - status['began'])}{', paused' if status['paused'] else ''}",
        f"  page      {status['page'] or 'none'}",
        f"  watching  {number_text(status['kernels'], 'kernel')} in {', '.join(status['folders'])}",
        f"  jobs      {jobs}",
        f"  today     {duration_text(status['spent_today_s'])} of runs",
    ]
    lines += [f"  trouble   {what}" for what in status.get("wrong", ())]
    lines += [
        f"  {slot['device']:<9} {slot['standing']}{_progress_text(progress.get(slot['job'], {}))}"
        for slot in status["slots"]
    ]
    if not status["slots"]:
        lines.append("  no device yet: fsr daemon logs says why")
    lines += [f"  done      {Path(job['kernel']).name}: {_result_text(job['result'])}" for job in latest["done"]]
    lines += [f"  failed    {Path(job['kernel']).name}: {job['error'].splitlines()[0]}" for job in latest["failed"]]
    return "\n".join(lines)


def _result_text(result: dict[str, Any]) -> str:
    """What a run came to, and where its winner lies."""
    best = result["best"]
    return f"{ratio_text(best['speedup'])} ({result['basis']}), {result['output']}" if best else str(result["status"])


def _progress_text(progress: dict[str, Any]) -> str:
    """How a run stands, after the kernel's name."""
    if not progress:
        return ""
    best = f", best {ratio_text(progress['speedup'])}" if progress["speedup"] else ""
    return f": {progress['phase']}, {duration_text(progress['elapsed_s'])}, {progress['told']} evaluated{best}"


@daemon_command.command("logs")
@click.option("-n", "lines", default=LOG_LINES, show_default=True, help="How many lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes.")
def logs_command(lines: int, follow: bool) -> None:
    """What it did, newest last."""
    path = _place().log
    if not path.exists():
        click.echo(f"there is no log yet in {path.parent}")
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    click.echo("\n".join(text.splitlines()[-lines:]))
    if follow:
        _follow(path, len(text.encode("utf-8", "replace")))


def _follow(path: Path, position: int) -> None:
    """Print what is appended to a log until interrupted; one that was turned over is read from its beginning."""
    while True:
        if path.stat().st_size < position:
            position = 0
        with path.open("rb") as file:
            file.seek(position)
            new = file.read()
        if new:
            position += len(new)
            click.echo(new.decode("utf-8", "replace"), nl=False)
        time.sleep(0.3)


@daemon_command.command("pause")
def pause_command() -> None:
    """Begin nothing new and pause what runs, until `fsr daemon resume`, also over a restart."""
    _ask("POST", "/api/pause")
    click.echo("paused; fsr daemon resume ends it")


@daemon_command.command("resume")
def resume_command() -> None:
    """End a pause."""
    _ask("POST", "/api/resume")
    click.echo("resumed")


@daemon_command.command("install")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=str))
def install_command(folders: tuple[str, ...]) -> None:
    """Write a systemd unit that starts it when you log in."""
    from fsrd.control.start import install

    path = install(read_settings(), folders)
    click.echo(f"written {path}\nbegin with: systemctl --user daemon-reload && systemctl --user enable --now fsr")
