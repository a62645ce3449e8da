"""Pieces of text that deal points of a domain out to threads in a new way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fsr.analysis.domain import Axis, Domain
from fsr.analysis.point_accesses import Inits, written_out
from fsr.contract.model import Contract
from fsr.errors import FsrError
from fsr.expressions import evaluate
from fsr.records import Launch
from fsr.source.emit import emit_expr
from fsr.source.names import indent
from fsr.transform.placement import grid_for
from fsr.transform.target import Target

GRID_LIMIT_Y = 65535  # CUDA's limit for y and z of a grid


def condition(axis: Axis, values: Inits) -> str:
    """The conditions on an axis as text, locals written out; '' when there are none."""
    guard = axis.guard()
    text = "" if guard is None else emit_expr(written_out(guard, values))
    return f"({text})" if "||" in text else text


def at_point(found: Domain, values: Inits, places: Mapping[str, str], inner: list[str]) -> list[str]:
    """Statements that set each axis's variable to the place given for it and run ``inner`` if the kernel handles that
    point. Declares variables: put it into a scope of its own."""
    axes = sorted(places, reverse=True)
    lines = [f"const {found.axes[a].type} {found.axes[a].var} = {places[a]};" for a in axes]
    guards = " && ".join(c for c in (condition(found.axes[a], values) for a in axes) if c)
    return [*lines, f"if ({guards or 'true'}) {{", *indent(inner), "}"]


def covered(site: Target, tiles: Mapping[str, int], block: tuple[int, int]) -> Launch:
    """The launch whose blocks of the given threads each cover a tile of points."""
    x, y = (grid_for(site.placed.points[a], tiles[a]) for a in "xy")
    return replace(
        site.launch, grid=(x, y, site.launch.grid[2]), block=(str(block[0]), str(block[1]), "1"), args=site.placed.args
    )


def grid_fits(launch: Launch, contract: Contract) -> bool:
    """Whether the grid stays within CUDA's limit along y at the largest sizes that are timed."""
    try:
        return all(evaluate(launch.grid[1], sizes) <= GRID_LIMIT_Y for sizes in contract.timed_sizes())
    except FsrError:
        return False
