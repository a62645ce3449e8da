"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]


def device_options(function: Function) -> Function:
    """--device, --target, --entry, --seed."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Of every random choice."),
        click.option("--entry", help="The kernel to take, where the file holds several."),
        click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for (host device)."),
        click.option("--device", default="auto", show_default=True, help="auto, cuda:N or host."),
    ):
        function = option(function)
    return function


def json_option(function: Function) -> Function:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON object.")(function)
