"""``fsr lookup`` as a click command, for `fsr --help`; :mod:`fsr.__main__` answers it before click is loaded."""

from __future__ import annotations

import click

from fsr.builds.lookup import main
from fsr.cache.layers import Layers
from fsr.settings import read_settings


@click.command("lookup", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lookup_command(arguments: tuple[str, ...]) -> int:
    """The winner for this hardware, for build systems."""
    settings = read_settings()
    return main(list(arguments), Layers(*settings.layers))
