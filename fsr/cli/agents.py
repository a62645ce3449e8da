"""``fsr ask``, ``fsr tell`` and ``fsr mcp``: a run driven by a coding agent."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fsr.errors import EXIT_DONE, MissingToolError, UsageError


@click.command("ask")
@click.argument("run")
@click.option(
    "--style", type=click.Choice(["whole", "edit"]), default="whole", show_default=True, help="Of the answer."
)
@click.option("--prompt", is_flag=True, help="Print the prompt alone, not the JSON object.")
def ask_command(run: str, style: str, prompt: bool) -> None:
    """Evidence on the fastest candidate of RUN as one JSON object: a prompt, the file to change, and an id for tell."""
    from fsr.app.agents import ask

    told = ask(run, style=style)
    click.echo(told["prompt"] if prompt else json.dumps(told))


@click.command("tell")
@click.argument("run")
@click.argument("number", metavar="ID", type=int)
@click.argument("candidate", type=click.Path(path_type=Path))
def tell_command(run: str, number: int, candidate: Path) -> int:
    """Evaluate CANDIDATE, made from question ID of RUN; its verdict and evidence as one JSON object.

    The file is device code; comment lines on top say how it is launched (ask shows them)."""
    from fsr.app.agents import tell

    try:
        text = candidate.read_text()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(
            f"the candidate cannot be read: {fault}", where=str(candidate), fix="name a .cu file"
        ) from None
    click.echo(json.dumps(tell(run, number, text)))
    return EXIT_DONE


@click.command("mcp")
def mcp_command() -> None:
    """Serve coding agents by the Model Context Protocol, on standard input and output.

    Tools: contract, features, check, evaluate, lookup, ask, tell."""
    try:
        from fsr.cli.agent_server import server
    except ImportError:
        raise MissingToolError(
            "the package mcp is not installed", expected="the official SDK, version 2 or later", where="fsr mcp",
            fix="pip install 'fsr[mcp]'",
        ) from None  # fmt: skip
    server.run("stdio")
