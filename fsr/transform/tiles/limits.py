"""Whether the lines that a tile holds parts of lie in their buffer whatever else a thread does: the numbers of threads
that tests leave, with the sizes that a contract allows, say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.threads import AXES
from fsr.source.form import Binary, Expr, For
from fsr.transform.sizes import always
from fsr.transform.target import Target
from fsr.transform.tiles.reads import Tile


def lies_within(target: Target, loop: For, tile: Tile, tests: Iterable[Expr]) -> bool:
    """Whether all elements of a loop's turns lie in the buffer, for all threads of which the ``tests`` that speak of
    the tile's axis hold."""
    axis, extent = tile.axis, (target.block or (0, 0))["xy".index(tile.axis)]
    thread, block = (tile.first.coefficient(f"{of}.{axis}") for of in ("threadIdx", "blockIdx"))
    each = block if extent == 1 else thread
    if each is None or block is None or each * constant(extent) != block:
        return False
    rest = tile.first.without(f"threadIdx.{axis}").without(f"blockIdx.{axis}")
    layer = rest.coefficient("blockIdx.z")
    if layer is None:
        return False
    polys = (each, tile.step, rest.without("blockIdx.z"), layer)
    texts = [target.poly_text(p) for p in polys]
    first, last = target.size_text(loop.start), target.size_text(loop.bound)
    if None in texts or first is None or last is None:
        return False
    line, step, start, deep = texts
    last = last if loop.relation == "<=" else f"({last}) - 1"
    low = f"min({line}, {step}, {deep}, ({start}) + ({step}) * ({first}))"
    lines = [f"({target.launch.grid[AXES.index(axis)]}) * {extent}", *_bounds(target, axis, extent, tests)]
    deepest = f"({deep}) * (({target.launch.grid[2]}) - 1)"
    elements = f"({tile.of.count}) // {tile.of.cell[2]}"
    highs = (f"({line}) * (({n}) - 1) + ({start}) + {deepest} + ({step}) * ({last}) + {tile.width - 1}" for n in lines)
    return always(target.contract, f"({low}) >= 0") and any(
        always(target.contract, f"({high}) < ({elements})") for high in highs
    )


def _bounds(target: Target, axis: str, extent: int, tests: Iterable[Expr]) -> Iterator[str]:
    """Numbers of threads along an axis that tests leave."""
    number: Poly = symbol(f"blockIdx.{axis}") * constant(extent)
    number = number if extent == 1 else number + symbol(f"threadIdx.{axis}")
    known = {**target.numbers, **({f"threadIdx.{axis}": 0} if extent == 1 else {})}
    for test in tests:
        match test:
            case Binary("<" | "<=" as op, left, right) | Binary(">" | ">=" as op, right, left):
                text = target.size_text(right)
                if text is not None and target.known.poly(left, known) == number:
                    yield f"({text}) + 1" if "=" in op else text
