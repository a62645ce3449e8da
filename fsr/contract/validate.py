"""Check what a contract's expressions come to: at the smallest, the largest and every timed size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from fsr.contract.fields import relocated
from fsr.contract.model import Argument, Contract, at_ends, dim3, repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate, evaluate_int, is_floating, parse
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import STEP, Launch, Role

MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_ELEMENTS = 2**40  # a tebi-element buffer fits no device there is: a slip of the pen

Where = Callable[..., str]


def validate(contract: Contract, where: Where | None = None) -> Contract:
    """The contract itself when every expression evaluates to something sensible.

    ``where(*keys)`` gives ``file:line`` of a key; without it errors name the contract's origin. Raises
    ContractError: an expression that does not evaluate, a negative extent, a block of more than 1024 threads, a
    grid beyond the limits of CUDA, contradicting constraints, a name that is a size and another argument.
    """
    place = where or (lambda *_: f"{contract.origin.path}:{contract.origin.line or 1}")
    _names(contract, place)
    _group(contract, place)
    for label, sizes in size_points(contract):
        _arguments(contract, sizes, label, place)
        for index, launch in enumerate(contract.plan.launches):
            _launch(contract, launch, index, sizes, label, place)
        for scratch in contract.plan.scratch:
            count = _at(scratch.count, sizes, place("scratch", scratch.name, "count"))
            spot = place("scratch", scratch.name)
            _not_negative(count, f"the count of the scratch buffer {scratch.name}", label, spot)
            if count > MAX_ELEMENTS:
                raise ContractError(
                    f"the scratch buffer {scratch.name} has {count:,} elements at {label}",
                    expected=f"at most {MAX_ELEMENTS:,}", where=spot, fix="correct its count",
                )  # fmt: skip
        if contract.tolerance.sum_length is not None:
            _at(contract.tolerance.sum_length, sizes, place("tolerance", "sum_length"))
    return contract


def size_points(contract: Contract) -> Iterator[tuple[str, dict[str, int]]]:
    """Sizes to check at, with a name for messages."""
    yield "the smallest sizes", {s.name: s.minimum for s in contract.sizes}
    for index, sizes in enumerate(contract.timed_sizes()):
        yield f"timed sizes {index + 1}", sizes
    yield "the largest sizes", {s.name: s.maximum for s in contract.sizes}


def _names(contract: Contract, place: Where) -> None:
    outputs = [a for a in contract.args if a.role in (Role.OUT, Role.INOUT)]
    if not outputs:
        raise ContractError(
            "no argument has the role out or inout",
            expected="at least one result to compare", where=place("args"), fix='give the result role = "out"',
        )  # fmt: skip
    for argument in (part for a in contract.args for part in a.parts()):
        c = argument.constraints
        if argument.role is Role.OUT and c.low is not None:
            raise ContractError(
                f"the argument {argument.name} is out, and says what it holds on entry",
                expected='role = "inout" for a buffer whose contents count on entry',
                where=place("args", *argument.name.split(".", 1)), fix='write role = "inout"',
            )  # fmt: skip
        if argument.role is Role.SCALAR and argument.value is None and c.low is None and _integral(argument.dtype):
            raise ContractError(
                f"the integer {argument.name} has neither a value nor limits",
                expected=f'{argument.name} = {{value = "n"}} when it is a size, or low and high',
                where=place("args", argument.name), fix="add one",
            )  # fmt: skip


def _group(contract: Contract, place: Where) -> None:
    """Refuse lists of values that differ where memory is shared: it holds what is in both."""
    for group in contract.aliasing:
        listed = [a for a in map(contract.argument, group) if a.constraints.values]
        other = [a for a in listed if a.constraints.values != listed[0].constraints.values]
        if other:
            raise ContractError(
                f"{listed[0].name} and {other[0].name} may overlap, and have different values",
                expected="the same values for memory that is the same", where=place("args", other[0].name, "values"),
                fix="correct values, or aliasing",
            )  # fmt: skip


def _integral(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def _arguments(contract: Contract, sizes: Mapping[str, int], label: str, place: Where) -> None:
    for argument in contract.args:
        spot = place("args", argument.name, "shape")
        extents = [_at(text, sizes, spot) for text in argument.shape]
        for extent in extents:
            _not_negative(extent, f"an extent of {argument.name}", label, spot)
        if math.prod(extents) > MAX_ELEMENTS:
            raise ContractError(
                f"the buffer {argument.name} has {math.prod(extents):,} elements at {label}",
                expected=f"at most {MAX_ELEMENTS:,}", where=spot, fix="lower max or timed of its sizes",
            )  # fmt: skip
        if argument.value is not None:
            _number(argument.value, sizes, place("args", argument.name, "value"), is_floating(argument.dtype))
        for part in argument.parts():
            _limits(part, extents[: len(part.shape)], sizes, label, partial(_of_part, place, argument))


def _of_part(place: Where, argument: Argument, first: str, name: str, *keys: str) -> str:
    """Where something stands of an argument, or of a member of its structures."""
    return place(first, argument.name, *([path] if (path := name[len(argument.name) + 1 :]) else []), *keys)


def _limits(argument: Argument, extents: list[int], sizes: Mapping[str, int], label: str, place: Where) -> None:
    spot, rules, name = partial(place, "args", argument.name), argument.constraints, argument.name
    if rules.offsets is not None:
        _offsets(argument, sizes, label, spot("offsets"))
        return
    if rules.values:
        _held(argument, spot("values"))
        return
    for key, each in (("low", rules.lows), ("high", rules.highs)):
        if each and len(each) != (extents[-1] if extents else 1):
            raise ContractError(
                f"{name} has {len(each)} numbers for {'value' if rules.lows == rules.highs else key} along its last "
                f"extent, which is {extents[-1] if extents else 1} at {label}",
                expected="as many as the last extent, or one for all", where=spot(key),
                fix="correct the list, or the shape",
            )  # fmt: skip
    several = range(max(len(rules.lows), len(rules.highs)))
    for one, title in [(rules.of_element(n), f"{name}[..., {n}]") for n in several] or [(rules, name)]:
        ends = [
            None if e is None else _number(e, sizes, spot("low"), is_floating(argument.dtype))
            for e in (one.low, one.high)
        ]
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1] and math.prod(extents) > 0:
            raise ContractError(
                f"the values of {title} go from {ends[0]} to {ends[1]} at {label}",
                expected="low at most high", where=spot("low"), fix="correct the limits",
            )  # fmt: skip


def _held(argument: Argument, spot: str) -> None:
    """Refuse values that the type does not hold."""
    dtype, values = argument.dtype, argument.constraints.values
    if is_floating(dtype):
        return
    bits = 1 if dtype == "bool" else 8 * BY_DTYPE[dtype].bytes
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.startswith("int") else (0, 2**bits - 1)
    beyond = [v for v in values if not least <= v <= most]
    if beyond:
        raise ContractError(
            f"the values of {argument.name} have {beyond[0]:,}", expected=f"{least:,} to {most:,}, which {dtype} holds",
            where=spot, fix="correct values",
        )  # fmt: skip


def _offsets(argument: Argument, sizes: Mapping[str, int], label: str, spot: str) -> None:
    if not _integral(argument.dtype):
        raise ContractError(
            f"the offsets {argument.name} are {argument.dtype}", expected="an array of integers", where=spot,
            fix="remove offsets",
        )  # fmt: skip
    total = _at(str(argument.constraints.offsets), sizes, spot)
    most = 2 ** (8 * BY_DTYPE[argument.dtype].bytes - argument.dtype.startswith("int")) - 1
    if not 0 <= total <= most:
        raise ContractError(
            f"the offsets {argument.name} end at {total:,} at {label}",
            expected=f"0 to {most:,}, which {argument.dtype} holds", where=spot,
            fix="correct offsets, or lower max of its sizes",
        )  # fmt: skip


def _launch(contract: Contract, launch: Launch, index: int, sizes: Mapping[str, int], label: str, place: Where) -> None:
    keys: tuple[str | int, ...] = ("launch", index) if place("launch", index) != place("launch") else ("launch",)
    try:
        last = max(repeats_of(launch, sizes) - 1, 0)
    except ContractError as fault:
        raise relocated(fault, place(*keys, "repeat")) from None
    if launch.repeated and STEP in sizes:
        raise ContractError(
            f"{launch.entry} is repeated, and a size is called {STEP!r}, which counts the repetitions",
            expected="another name for the size", where=place("sizes", STEP), fix="rename it",
        )  # fmt: skip
    for known in at_ends(launch, sizes):
        _shape(launch, keys, known, label, place)
    for arg in launch.args:
        if not isinstance(arg, str):
            for step in (0, last):
                known = {**sizes, STEP: step} if launch.repeated else sizes
                _number(arg.value, known, place(*keys, "args"), is_floating(arg.dtype))


def _shape(launch: Launch, keys: tuple[str | int, ...], sizes: Mapping[str, int], label: str, place: Where) -> None:
    try:
        grid, block = dim3(launch.grid, sizes), dim3(launch.block, sizes)
    except ContractError as fault:
        broken = "grid" if any(_fails(t, sizes) for t in launch.grid) else "block"
        raise relocated(fault, place(*keys, broken)) from None
    threads = math.prod(block)
    if threads > MAX_THREADS or any(b > limit for b, limit in zip(block, MAX_BLOCK, strict=True)):
        raise ContractError(
            f"the block of {launch.entry} is {block[0]} x {block[1]} x {block[2]} = {threads} threads at {label}",
            expected="1 to 1024 threads, at most 1024 x 1024 x 64", where=place(*keys, "block"),
            fix="lower the block",
        )  # fmt: skip
    if threads == 0 and math.prod(grid) > 0:
        raise ContractError(
            f"the block of {launch.entry} is empty at {label}", expected="at least one thread",
            where=place(*keys, "block"), fix="correct the block, or let the grid be 0 there too",
        )  # fmt: skip
    if any(g > limit for g, limit in zip(grid, MAX_GRID, strict=True)):
        raise ContractError(
            f"the grid of {launch.entry} is {grid[0]} x {grid[1]} x {grid[2]} at {label}",
            expected="at most 2147483647 x 65535 x 65535", where=place(*keys, "grid"),
            fix="lower max of the sizes, or move the long dimension to x",
        )  # fmt: skip
    shared = _at(launch.shared_bytes, sizes, place(*keys, "shared_bytes"))
    _not_negative(shared, "shared_bytes", label, place(*keys, "shared_bytes"))


def _fails(text: str, sizes: Mapping[str, int]) -> bool:
    try:
        evaluate_int(text, sizes)
    except ContractError:
        return True
    return False


def _at(text: str, sizes: Mapping[str, int], where: str) -> int:
    try:
        return evaluate_int(text, sizes)
    except ContractError as fault:
        raise relocated(fault, where) from None


def _number(text: str, sizes: Mapping[str, int], where: str, floating: bool) -> float:
    """``floating``: whether a floating number is meant, which may be divided by ``/``."""
    try:
        parse(text, floating)
        return evaluate(text, sizes)
    except ContractError as fault:
        raise relocated(fault, where) from None


def _not_negative(value: int, what: str, label: str, where: str) -> None:
    if value < 0:
        raise ContractError(
            f"{what} is {value} at {label}", expected="at least 0", where=where, fix="correct the expression"
        )
