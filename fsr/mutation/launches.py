"""Faults in a plan: grids, blocks, shared memory, scratch, the order of launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fsr.records import Launch, Plan
from fsr.source.entry import function_name

_CEIL = re.compile(r"ceil_div\(([^(),]+),\s*([^(),]+)\)")


def plans(plan: Plan, parameters: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int, Plan]]:
    """(operator, number of the launch, the wrong plan) of every fault. ``parameters``: types of a kernel's, by name."""
    for number, launch in enumerate(plan.launches):
        types = parameters.get(function_name(launch.entry), ())
        for operator, wrong in (*_launches(launch), *_confused(launch, types)):
            launches = (*plan.launches[:number], wrong, *plan.launches[number + 1 :])
            yield operator, number, replace(plan, launches=launches)
        if len(plan.launches) > 1:
            yield "launch-dropped", number, replace(plan, launches=plan.launches[:number] + plan.launches[number + 1 :])
        if number + 1 < len(plan.launches):
            swapped = list(plan.launches)
            swapped[number : number + 2] = swapped[number + 1], swapped[number]
            yield "launches-swapped", number, replace(plan, launches=tuple(swapped))
    for index, scratch in enumerate(plan.scratch):
        if scratch.zeroed:
            dirty = (*plan.scratch[:index], replace(scratch, zeroed=False), *plan.scratch[index + 1 :])
            yield "scratch-not-cleared", 0, replace(plan, scratch=dirty)


def _launches(launch: Launch) -> Iterator[tuple[str, Launch]]:
    for axis, text in enumerate(launch.grid):
        if text.strip() == "1":
            continue
        yield "grid-short", _with_grid(launch, axis, f"max(({text}) - 1, 1)")
        yield "grid-halved", _with_grid(launch, axis, f"ceil_div({text}, 2)")
        if _CEIL.search(text):
            floored = _CEIL.sub(r"((\1) // (\2))", text)
            yield "grid-without-rest", _with_grid(launch, axis, f"max({floored}, 1)")
    for axis, text in enumerate(launch.block):
        if text.strip() != "1":
            yield "block-halved", replace(launch, block=_with(launch.block, axis, f"ceil_div({text}, 2)"))
    if launch.shared_bytes.strip() not in ("0", ""):
        yield "shared-short", replace(launch, shared_bytes=f"({launch.shared_bytes}) // 2")
    if launch.repeated:
        yield "repeat-short", replace(launch, repeat=f"max(({launch.repeat}) - 1, 0)")


def _confused(launch: Launch, types: Sequence[str]) -> Iterator[tuple[str, Launch]]:
    """Neighbouring arguments of one type swapped."""
    plain = [type_.replace("const ", "") for type_ in types]
    for i in range(min(len(plain), len(launch.args)) - 1):
        if plain[i] == plain[i + 1] and launch.args[i] != launch.args[i + 1]:
            args = list(launch.args)
            args[i], args[i + 1] = args[i + 1], args[i]
            yield "arguments-swapped", replace(launch, args=tuple(args))


def _with_grid(launch: Launch, axis: int, text: str) -> Launch:
    return replace(launch, grid=_with(launch.grid, axis, text))


def _with(dims: tuple[str, str, str], axis: int, text: str) -> tuple[str, str, str]:
    x, y, z = (text if number == axis else old for number, old in enumerate(dims))
    return x, y, z
