"""``fsr check`` and ``fsr evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fsr.cli.options import device_options, json_option
from fsr.errors import EXIT_DONE, EXIT_FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fsr.runs.options import OptionFields


@click.command("check")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", type=click.Path(path_type=Path), help="The original kernel [CANDIDATE itself].")
@click.option("--adequacy", is_flag=True, help="Test the tests: how many planted faults (mutants) they find.")
@click.option("--mutants", type=click.IntRange(1, 100_000), default=60, show_default=True, help="How many, at most.")
@device_options
@json_option
def check_command(
    candidate: Path, kernel: Path | None, adequacy: bool, mutants: int, as_json: bool, **options: Any
) -> int:
    """Test CANDIDATE against a kernel: every search-time and held-out case. Exits 1 when it fails. Without --against
    CANDIDATE is a kernel, tested under its own contract: whether it compiles and passes.

    With --adequacy, CANDIDATE is taken as right: faults are planted in it, on the host device, and the tests must find
    them. Exits 1 when one survives that is not equivalent as far as was seen."""
    if adequacy:
        return _adequacy(candidate, kernel, mutants, options, as_json=as_json)  # type: ignore[arg-type]
    return _judge(candidate, kernel, options, timed=False, as_json=as_json)  # type: ignore[arg-type]


@click.command("evaluate")
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--against", "kernel", required=True, type=click.Path(path_type=Path), help="The original kernel.")
@device_options
@json_option
def evaluate_command(candidate: Path, kernel: Path, as_json: bool, **options: Any) -> int:
    """Test CANDIDATE against a kernel and time both. Exits 1 when it fails a test."""
    return _judge(candidate, kernel, options, timed=True, as_json=as_json)  # type: ignore[arg-type]


def _judge(candidate: Path, kernel: Path | None, options: OptionFields, *, timed: bool, as_json: bool) -> int:
    from fsr.app.checking import judge, judge_own
    from fsr.report.terminal import check_summary, waiting
    from fsr.runs.options import RefineOptions

    with waiting(f"testing {f'{kernel.name}, then ' if kernel else ''}{candidate.name}") as tell:
        given = RefineOptions(kernel or candidate, **options)
        result = (judge(candidate, given, timed=timed, tell=tell) if kernel else judge_own(given, tell=tell)).to_json()
    click.echo(json.dumps(result) if as_json else check_summary(result))
    return EXIT_DONE if result["status"] == "passed" else EXIT_FAILED


def _adequacy(candidate: Path, kernel: Path | None, count: int, options: OptionFields, *, as_json: bool) -> int:
    from fsr.app.adequacy import measure
    from fsr.report.adequacy import adequacy_summary
    from fsr.report.terminal import waiting
    from fsr.runs.options import RefineOptions

    with waiting(f"testing {candidate.name}, then up to {count} mutants of it"):
        result = measure(candidate, RefineOptions(kernel or candidate, **options), count)
    click.echo(json.dumps(result) if as_json else adequacy_summary(result))
    return EXIT_DONE if result["status"] == "adequate" else EXIT_FAILED
