"""Launch geometry of a domain: how many points there are, and grids of other blocks that cover them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fsr.analysis.aliasing import may_alias as may_overlap
from fsr.analysis.domain import Axis, Domain
from fsr.analysis.polynomial import Poly, symbol
from fsr.contract.model import Contract
from fsr.records import Launch, Role, ScalarArgument
from fsr.source.form import Binary, KernelForm, Name, Param
from fsr.source.walk import fresh, taken_names
from fsr.transform.sizes import always


@dataclass(frozen=True, slots=True)
class Placed:
    """A domain whose every axis has an upper bound in its conditions. ``points``: size expressions of the number of
    ids along each axis; ``params`` and ``args``: what the kernel's parameters and the launch's arguments become."""

    domain: Domain
    points: dict[str, str]
    params: tuple[Param, ...]
    args: tuple[str | ScalarArgument, ...]


def placed(found: Domain, contract: Contract) -> Placed | None:
    """The domain with bounds for every axis: where the kernel has no guard, the launch bounds it, and the bound
    becomes a parameter. None when the number of points is no size expression."""
    params, args, points, axes = list(found.form.params), list(found.launch.args), {}, {}
    taken = taken_names(found.form)
    for name, axis in found.axes.items():
        launched = launched_along(found.launch, name)
        text = None if axis.extent is None else size_text(axis.extent, found.form, found.launch, contract)
        if found.flat is not None and text is None:
            return None
        if text is not None and (found.flat is not None or always(contract, f"({text}) <= ({launched})")):
            points[name], axes[name] = text, axis
        else:  # without a guard, or where the launch stops short of it: the launch is what counts
            bound = fresh(f"fsr_{name}_points", taken)  # a move before this one may have added its own
            params.append(Param("int", bound))
            args.append(ScalarArgument("int32", launched))
            points[name], axes[name] = launched, _bounded(axis, bound)
    whole = " * ".join(f"({text})" for text in points.values())
    if found.flat is not None and not always(contract, f"{whole} <= ({launched_along(found.launch, 'x')})"):
        return None
    return Placed(replace(found, axes=axes), points, tuple(params), tuple(args))


def _bounded(axis: Axis, bound: str) -> Axis:
    return replace(axis, inside=(*axis.inside, Binary("<", Name(axis.var), Name(bound))), extent=symbol(bound))


def launched_along(launch: Launch, axis: str) -> str:
    """The number of threads along an axis, as a size expression."""
    grid, block = launch.grid["xyz".index(axis)], launch.block["xyz".index(axis)]
    return f"({grid}) * ({block})"


def size_text(value: Poly, form: KernelForm, launch: Launch, contract: Contract) -> str | None:
    """A polynomial of kernel parameters as a size expression; None when a parameter's value is drawn per case."""
    values: dict[str, str] = {}
    for param, argument in zip(form.params, launch.args, strict=False):
        if isinstance(argument, ScalarArgument):
            values[param.name] = argument.value
            continue
        declared = next((a for a in contract.args if a.name == argument), None)
        if declared is not None and declared.role is Role.SCALAR and declared.value is not None:
            values[param.name] = str(declared.value)
    parts = []
    for monomial, factor in value.terms:
        factors = [_size_factor(s, values) for s in monomial]
        known = [f for f in factors if f is not None]
        if len(known) != len(factors):
            return None
        if factor != 1 or not known:
            known.insert(0, str(factor))
        parts.append(" * ".join(known))
    return " + ".join(parts) if parts else "0"


def _size_factor(name: str, values: dict[str, str]) -> str | None:
    text = values.get(name)
    return text if text is None or re.fullmatch(r"\w+", text) else f"({text})"


def grid_for(points: str, tile: int) -> str:
    """The number of tiles that cover the points: ``ceil_div(points, tile)``."""
    return f"ceil_div({points}, {tile})" if tile != 1 else points


def may_alias(contract: Contract, launch: Launch, found: Domain, one: str, other: str) -> bool:
    """Whether two pointer parameters may share memory, by the contract's word."""
    argument = {p.name: str(a) for p, a in zip(found.form.params, launch.args, strict=False)}
    return one == other or may_overlap(argument[one], argument[other], contract.aliasing)


def dtype_of(contract: Contract, launch: Launch, found: Domain, array: str) -> str | None:
    """The NumPy name of an array parameter's elements; None for a buffer that is no contract argument."""
    for param, argument in zip(found.form.params, launch.args, strict=False):
        if param.name == array and isinstance(argument, str):
            return next((a.dtype for a in contract.args if a.name == argument), None)
    return None
