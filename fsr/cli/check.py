"""``fsr check`` and ``fsr evaluate``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from fsr.cli.options import device_options, json_option
from fsr.errors import EXIT_DONE, EXIT_FAILED
from fsr.records import Json


@click.command("check")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", required=True, type=click.Path(path_type=Path), help="The original kernel.")
@device_options
@json_option
def check_command(
    candidate: Path, kernel: Path, device: str, target: str, entry: str | None, seed: int, as_json: bool
) -> int:
    """Test CANDIDATE against a kernel: every search-time and held-out case. Exits 1 when it fails."""
    from fsr.app import RefineOptions, check

    result = check(candidate, RefineOptions(kernel, device, target, seed=seed, entry=entry))
    return _tell(result, as_json)


@click.command("evaluate")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", required=True, type=click.Path(path_type=Path), help="The original kernel.")
@device_options
@json_option
def evaluate_command(
    candidate: Path, kernel: Path, device: str, target: str, entry: str | None, seed: int, as_json: bool
) -> int:
    """Test CANDIDATE against a kernel and time both. Exits 1 when it fails a test."""
    from fsr.app import RefineOptions, evaluate

    result = evaluate(candidate, RefineOptions(kernel, device, target, 20.0, seed=seed, entry=entry))
    return _tell(result, as_json)


def _tell(result: Mapping[str, Json], as_json: bool) -> int:
    from fsr.report.terminal import check_summary

    click.echo(json.dumps(result) if as_json else check_summary(result))
    return EXIT_DONE if result["status"] == "passed" else EXIT_FAILED
