"""``fsr refine``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from fsr.cli.options import FiniteRange, device_options, json_option
from fsr.runs.options import RefineOptions


@click.command("refine")
@click.argument("kernel", type=click.Path(path_type=Path), required=False)
@device_options
@click.option("--budget", default="5m", show_default=True, help="Time for the whole run: 90s, 5m, 1h.")
@click.option("--evaluations", type=click.IntRange(min=1), help="Stop after this many candidates.")
@click.option("--keep-launch", is_flag=True, help="Keep grid, block and arguments as they are.")
@click.option("--workers", type=click.IntRange(min=1), help="Compile processes; one a core by default.")
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Use Ray: the address of a cluster, with #TYPE for its GPUs of one type, or 'local'.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was cut off.")
@click.option(
    "--llm",
    "llm",
    multiple=True,
    metavar="MODEL",
    help="A model that proposes; may come several times: "
    "local:PATH (a GGUF file), URL#MODEL, a name in config.toml, or none.",
)
@click.option("--max-cost", type=FiniteRange(min=0.0), metavar="DOLLARS", help="Most that models may cost.")
@click.option("--yes", is_flag=True, help="The source may go to the hosts of the models named.")
@click.option("--replay", metavar="RUN", help="Run again with the answers that RUN's models gave; asks no model.")
@click.option("--no-cache", is_flag=True, help="Neither start from the cache nor store to it.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where the winner goes [kernel.fsr.cu].")
@json_option
def refine_command(
    kernel: Path | None, budget: str, resume: str | None, replay: str | None, no_cache: bool, out: Path | None,
    as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Find a faster kernel that is proven to do the same as KERNEL.

    Writes kernel.fsr.cu and its evidence, kernel.fsr.json; kernel.fsr.cuh too when the launch changed. On a
    machine without a GPU, times are predicted and labelled so. Ctrl-C keeps the best so far.
    """
    from fsr.app.api import to_its_end
    from fsr.cli.options import process_age_s
    from fsr.errors import UsageError
    from fsr.report.terminal import Display, summary
    from fsr.runs.options import parse_duration
    from fsr.runs.replaying import replayed
    from fsr.runs.run import Run

    if kernel is None and resume is None and replay is None:
        raise UsageError("no kernel named", expected="fsr refine KERNEL", fix="name a .cu file, or --resume RUN")
    asked = RefineOptions(
        kernel or Path(), budget_s=parse_duration(budget), output=out, use_cache=not no_cache, **options
    )
    if replay is not None:
        asked = replayed(replay, out)
    if resume is None and not asked.yes and replay is None:
        _ask_for_consent(asked)
    run = Run.resume(resume) if resume is not None else Run(asked)
    with Display() as display:
        result = to_its_end(run, display.show, since_s=process_age_s()).to_json()
    if as_json:
        click.echo(json.dumps(result))
    else:
        click.echo(summary(result))
    return 0


def _ask_for_consent(options: RefineOptions) -> None:
    """Say which hosts would get the source, and ask, the first time; on a terminal only."""
    from fsr.runs.models import agree, named_models, unknown_hosts
    from fsr.settings import read_settings

    settings = read_settings()
    hosts = unknown_hosts(named_models(options, settings), settings)
    if not hosts or not sys.stdin.isatty():  # without a terminal the run itself refuses, and says how to go on
        return
    named = " and ".join(hosts)
    if not click.confirm(f"{options.kernel.name} and what is tried on it will be sent to {named}. Go on?", err=True):
        raise click.Abort
    agree(hosts, settings)
