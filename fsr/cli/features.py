"""``fsr features``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fsr.cli.options import json_option, source_options


@click.command("features")
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for.")
@source_options
@json_option
def features_command(kernel: Path, target: str, as_json: bool, **options: Any) -> None:
    """Say what holds KERNEL back, in words and line by line.

    The kernel runs on the CPU with every access recorded; the time is predicted for --target and says so.
    """
    from fsr.app.explaining import features
    from fsr.runs.options import RefineOptions

    text, told = features(RefineOptions(kernel, "host", target, **options))
    click.echo(json.dumps(told) if as_json else text)
