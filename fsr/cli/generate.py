"""``fsr generate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fsr.cli.options import FiniteRange, json_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fsr.app.generating import Suggested


@click.command("generate")
@click.argument("description", metavar="SPEC", type=click.Path(path_type=Path))
@click.option("--language", type=click.Choice(["cuda"]), default="cuda", show_default=True, help="To be written in.")
@click.option("-n", "--suggestions", type=click.IntRange(1, 100), default=10, show_default=True, help="How many.")
@click.option("--llm", multiple=True, metavar="MODEL", help="Who writes: URL#MODEL, local:PATH, or a configured name.")
@click.option("--max-cost", type=FiniteRange(min=0.0), metavar="DOLLARS", help="Most that the model may cost.")
@click.option("--yes", is_flag=True, help="Description and reference may go to the model's host.")
@click.option("--seed", default=0, show_default=True, help="Another asks for other suggestions, and draws other tests.")
@click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for (host device).")
@click.option("--device", default="auto", show_default=True, help="auto, cuda:N or host.")
@click.option("-o", "--out", "output", type=click.Path(path_type=Path), help="Where the kernel goes [SPEC.cu].")
@json_option
def generate_command(description: Path, language: str, suggestions: int, as_json: bool, **options: Any) -> int:
    """Have a language model write a first kernel from SPEC: a contract and a reference, and no kernel.

    SPEC is a TOML file with the keys of a contract, a dtype for every argument and a reference, a NumPy function.
    Every suggestion is tested against the reference as an original is; the fastest right one is written, and the first
    ten tell the model's proficiency from 0 to 1 (arXiv 2306.15121). Exits 1 when none is right.
    """
    from fsr.app.generating import generate
    from fsr.report.generating import generated_summary, suggestion_line
    from fsr.runs.options import RefineOptions
    from fsr.settings import read_settings

    def tell(one: Suggested) -> None:
        click.echo(suggestion_line(one.to_json()), err=True)

    result = generate(description, RefineOptions(Path(), **options), read_settings(), suggestions, tell).to_json()
    click.echo(json.dumps(result) if as_json else generated_summary(result))
    return 0 if result["status"] == "generated" else 1
