"""``fsr cache``: what is stored, why it is or is not served, and keeping it clean."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsr.cache.entry import Entry
from fsr.cache.experience import counts, forget
from fsr.cache.quarantine import held
from fsr.cache.store import Store
from fsr.cache.trimming import trim
from fsr.cli.group import Group
from fsr.cli.options import FiniteRange, json_option
from fsr.cli.sharing import SHARING
from fsr.errors import EXIT_DONE, EXIT_FAILED, UsageError
from fsr.report.words import number_text, ratio_text
from fsr.settings import read_settings

if TYPE_CHECKING:
    from fsr.runs.options import RefineOptions


@click.group("cache", cls=Group)
def cache_command() -> None:
    """List, explain, verify, share and prune cached winners."""


for _command in SHARING:
    cache_command.add_command(_command)


def _store() -> Store:
    return Store(Path(read_settings().cache))


def _row(row: dict[str, Any], entry: Entry | None) -> dict[str, Any]:
    told: dict[str, Any] = {"key": row["key"], "basis": row["basis"], "arch": row["arch"], "created": row["created"]}
    if entry is None:
        return told | {"damaged": True}
    best = entry.evidence.get("best") or {}
    return told | {
        "damaged": False, "entry": entry.key.entry, "device": entry.device.get("name"),
        "target": entry.device.get("target"), "speedup": best.get("speedup"), "files": sorted(entry.files),
    }  # fmt: skip


@cache_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """All winners, newest first."""
    with _store() as store:
        rows = [_row(row, entry) for row, entry in store.entries()]
        apart = len(list(held(store)))
    if as_json:
        click.echo(json.dumps({"winners": rows}))
        return
    if apart:
        click.echo(f"{number_text(apart, 'winner')} in quarantine: `fsr cache verify KERNEL...` tests what is there")
    if not rows:
        click.echo("the cache holds no winners")
    for row in rows:
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["created"]))
        what = "damaged" if row["damaged"] else f"{row['entry']:<20} {ratio_text(row['speedup'])} ({row['basis']})"
        click.echo(f"{row['key'][:16]}  {date}  {row.get('target') or row['arch']:<8} {what}")


@cache_command.command("show")
@click.argument("key")
def show_command(key: str) -> None:
    """One winner by its key (the first characters are enough), as JSON."""
    with _store() as store:
        row, entry = _one(store, key)
    told = _row(row, entry) if entry is None else json.loads(entry.to_body())
    click.echo(json.dumps(told, indent=2))


@cache_command.command("explain")
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--device", default="cuda:0", show_default=True, help="cuda:N.")
def explain_command(kernel: Path, device: str) -> int:
    """Say why `fsr lookup KERNEL` answers what it does: every stored winner of this file, and what differs."""
    from fsr.backends.select import parse_device
    from fsr.cache.explain import explain

    lines = explain(kernel, Path(read_settings().cache), parse_device(device).index)
    click.echo("\n".join(lines))
    return EXIT_DONE


@cache_command.command("verify")
@click.argument("kernels", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--device", default="auto", show_default=True, help="auto, cuda:N or host.")
@click.option("--budget", "budget_s", type=FiniteRange(min=1), default=300.0, help="Seconds a winner. [300]")
@json_option
def verify_command(kernels: tuple[Path, ...], device: str, budget_s: float, as_json: bool) -> int:
    """Check every entry, and measure the winners of KERNELS again.

    Without KERNELS, digests and keys are derived anew from what is stored; exits 1 when one is damaged (`fsr cache
    prune --damaged` removes it). With KERNELS, files or folders, their winners are tested and timed on this machine as
    by `fsr evaluate`: what holds is served, from quarantine too, what does not is removed."""
    with _store() as store:
        if kernels:
            from fsr.runs.options import RefineOptions

            return _measured(store, kernels, RefineOptions(kernels[0], device=device, budget_s=budget_s), as_json)
        rows = [(row["key"], entry is not None and entry.key.digest() == row["key"]) for row, entry in store.entries()]
        rows += [(key, entry is not None and entry.key.digest() == key) for key, entry in held(store)]
    damaged = [key for key, good in rows if not good]
    if as_json:
        click.echo(json.dumps({"checked": len(rows), "damaged": damaged}))
    else:
        click.echo(f"{number_text(len(rows), 'winner')} checked, {len(damaged)} damaged")
        for key in damaged:
            click.echo(f"  {key}")
    return EXIT_FAILED if damaged else EXIT_DONE


def _measured(store: Store, kernels: tuple[Path, ...], options: RefineOptions, as_json: bool) -> int:
    from fsr.app.verifying import verify  # 0.5 s: only where something is measured

    found = []
    for path in kernels:
        for kernel in sorted(p for p in path.rglob("*.cu") if p.exists()) if path.is_dir() else [path]:
            for one in verify(store, kernel, replace(options, kernel=kernel)):
                found.append(one)
                if not as_json:
                    click.echo(f"{one.kernel}  {one.key[:16]}  {one.state}: {one.why}")
    if as_json:
        told = [{"key": v.key, "kernel": str(v.kernel), "state": v.state, "why": v.why} for v in found]
        click.echo(json.dumps({"verified": told}))
    elif not found:
        click.echo("no winner of these kernels is stored")
    return EXIT_FAILED if any(v.state == "removed" for v in found) else EXIT_DONE


@cache_command.command("experience")
@json_option
def experience_command(as_json: bool) -> None:
    """What earlier runs left for later ones: how many moves on how many kernels, by device.

    A run tries first what gained most on kernels that are alike; how it is tested does not depend on it. `fsr cache
    prune --experience` forgets it, `fsr refine --no-cache` neither follows nor leaves any."""
    with _store() as store:
        rows = counts(store)
    if as_json:
        click.echo(json.dumps({"experience": rows}))
        return
    if not rows:
        click.echo("the cache holds no experience")
    for row in rows:
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["newest"]))
        told = f"{row['moves']} moves in {row['runs']} runs of {row['kernels']} kernels, the last {date}"
        click.echo(f"{row['hardware']:<24} {row['basis']:<10} {told}")


@cache_command.command("prune")
@click.option("--damaged", is_flag=True, help="Remove damaged entries.")
@click.option("--older-than", "days", type=FiniteRange(min=0), help="Remove what is older than that many days.")
@click.option("--failures", is_flag=True, help="Forget remembered failures (all, or those older than --older-than).")
@click.option("--experience", is_flag=True, help="Forget what runs learned (all, or older than --older-than).")
@click.option("--max-size", "megabytes", type=FiniteRange(min=0), help="Keep at most that many MB, the last used.")
def prune_command(damaged: bool, days: float | None, failures: bool, experience: bool, megabytes: float | None) -> None:
    """Remove entries; says how many. Without an option nothing is removed."""
    if not damaged and days is None and not failures and not experience and megabytes is None:
        raise UsageError(
            "nothing named to prune",
            expected="--damaged, --older-than DAYS, --failures, --experience or --max-size MB",
            fix="name what is to go",
        )  # fmt: skip
    limit = time.time() - (days or 0.0) * 86400
    with _store() as store:
        found = list(store.entries())
        keys = [r["key"] for r, e in found if (damaged and e is None) or (days is not None and r["created"] < limit)]
        removed = store.remove(keys)
        if megabytes is not None:
            removed += len(trim(store, int(megabytes * 1e6)))
        click.echo(f"{number_text(removed, 'winner')} removed")
        if failures:
            click.echo(f"{store.forget_failures((days or 0.0) * 86400)} failures forgotten")
        if experience:
            click.echo(f"what {forget(store, (days or 0.0) * 86400)} runs learned is forgotten")


def _one(store: Store, key: str) -> tuple[dict[str, Any], Entry | None]:
    found = [(row, entry) for row, entry in store.entries() if row["key"].startswith(key)]
    if len(found) != 1:
        raise UsageError(
            f"{len(found)} winners have a key that begins with {key!r}", expected="exactly one",
            fix="`fsr cache list` shows the keys",
        )  # fmt: skip
    return found[0]
