"""Loops over the grid that no thread goes through twice, as the test that they are then.

``for (i = id; i < n; i += blockDim.x * gridDim.x)`` is how libraries write kernels that run with any grid. A launch
with a thread for every number makes it ``if (i < n)``.
"""

from __future__ import annotations

from dataclasses import replace

from fsr.analysis.macros import expanded
from fsr.analysis.polynomial import symbol
from fsr.analysis.threads import global_axis
from fsr.analysis.types import is_integer
from fsr.source.form import Binary, Comment, Declare, For, If, Name, Return
from fsr.source.mapping import map_jumps
from fsr.source.walk import names_written
from fsr.transform.sizes import always
from fsr.transform.target import Target


def once_through(target: Target) -> Target:
    """The target with such a loop at the end of its kernel as a test; as it is where there is none."""
    read = replace(target, kernel=expanded(target.kernel, target.source))
    body = read.kernel.body
    if not body or not isinstance(body[-1], For) or any(not isinstance(s, Declare | Comment) for s in body[:-1]):
        return target
    loop = body[-1]
    if loop.type is None or not is_integer(loop.type) or loop.relation != "<" or loop.var in names_written(loop.body):
        return target
    step, bound = read.known.poly(loop.step), read.size_text(loop.bound)
    if global_axis(read.known.poly(loop.start)) != ("x", None) or bound is None:
        return target
    every = f"({read.launch.grid[0]}) * ({read.launch.block[0]})"
    if step != symbol("blockDim.x") * symbol("gridDim.x") or not always(read.contract, f"{every} >= ({bound})"):
        return target
    own = Declare(loop.type, loop.var, loop.start)
    turn = map_jumps(loop.body, lambda _: [Return(None)])  # there is one: whoever goes on or leaves is done
    test = If(Binary("<", Name(loop.var), loop.bound), turn)
    return replace(read, kernel=replace(read.kernel, body=(*body[:-1], own, test)))
