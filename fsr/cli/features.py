"""``fsr features``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fsr.cli.options import json_option


@click.command("features")
@click.argument("kernel", type=click.Path(path_type=Path))
@click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for.")
@click.option("--entry", help="The kernel to take, where the file holds several.")
@json_option
def features_command(kernel: Path, target: str, entry: str | None, as_json: bool) -> None:
    """Say what holds KERNEL back, in words and line by line.

    The kernel runs on the CPU with every access recorded; the time is predicted for --target and says so.
    """
    from fsr.app.explaining import features
    from fsr.runs.options import RefineOptions

    text, told = features(RefineOptions(kernel, "host", target, entry=entry))
    click.echo(json.dumps(told) if as_json else text)
