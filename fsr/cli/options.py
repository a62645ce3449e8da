"""Options that several commands share."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Function = Callable[..., Any]


class FiniteRange(click.FloatRange):
    """A number within bounds; no NaN, which is within all bounds, and nothing infinite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See the class."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number that can be counted to", param, ctx)
        return number


def _named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("an empty name", ctx, param)
    return value


def source_options(function: Function) -> Function:
    """--entry, -I, -D: what the kernel file is read with."""
    for option in (
        click.option(
            "-D", "--define", "defines", multiple=True, metavar="NAME[=VALUE]",
            help="A macro that the kernel is compiled under; may come several times.",
        ),
        click.option(
            "-I", "--include-dir", "include_dirs", multiple=True, metavar="FOLDER",
            help="Where its includes are searched; may come several times.",
        ),
        click.option("--entry", callback=_named, help="The kernel to take, where the file holds several."),
    ):  # fmt: skip
        function = option(function)
    return function


def device_options(function: Function) -> Function:
    """--device, --target, --seed, and those of :func:`source_options`."""
    function = source_options(function)
    for option in (
        click.option("--seed", default=0, show_default=True, help="Of every random choice."),
        click.option("--target", default="sm_90", show_default=True, help="Architecture to predict for (host device)."),
        click.option("--device", default="auto", show_default=True, help="auto, cuda:N or host."),
    ):
        function = option(function)
    return function


LONGEST_START_S = 30.0


def process_age_s() -> float:
    """Seconds since this process began (proc(5)): what a user waited already while Python started; 0 in a process that
    is older than any start takes, where a command was called by a program that runs for longer."""
    started_ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - started_ticks / os.sysconf("SC_CLK_TCK")
    return age_s if 0.0 <= age_s <= LONGEST_START_S else 0.0


def json_option(function: Function) -> Function:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON object.")(function)
