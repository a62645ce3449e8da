"""``fsr check`` and ``fsr evaluate``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fsr.cli.options import device_options, json_option
from fsr.errors import EXIT_DONE, EXIT_FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fsr.runs.options import OptionFields


@click.command("check")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", required=True, type=click.Path(path_type=Path), help="The original kernel.")
@device_options
@json_option
def check_command(
    candidate: Path, kernel: Path, device: str, target: str, entry: str | None, seed: int, as_json: bool
) -> int:
    """Test CANDIDATE against a kernel: every search-time and held-out case. Exits 1 when it fails."""
    options: OptionFields = {"device": device, "target": target, "seed": seed, "entry": entry}
    return _judge(candidate, kernel, options, timed=False, as_json=as_json)


@click.command("evaluate")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", required=True, type=click.Path(path_type=Path), help="The original kernel.")
@device_options
@json_option
def evaluate_command(
    candidate: Path, kernel: Path, device: str, target: str, entry: str | None, seed: int, as_json: bool
) -> int:
    """Test CANDIDATE against a kernel and time both. Exits 1 when it fails a test."""
    options: OptionFields = {"device": device, "target": target, "seed": seed, "entry": entry}
    return _judge(candidate, kernel, options, timed=True, as_json=as_json)


def _judge(candidate: Path, kernel: Path, options: OptionFields, *, timed: bool, as_json: bool) -> int:
    from fsr.app.checking import judge
    from fsr.report.terminal import check_summary
    from fsr.runs.options import RefineOptions

    result = judge(candidate, RefineOptions(kernel, **options), timed=timed).to_json()
    click.echo(json.dumps(result) if as_json else check_summary(result))
    return EXIT_DONE if result["status"] == "passed" else EXIT_FAILED
