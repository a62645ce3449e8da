"""What holds for all sizes that a contract allows, shown on a fixed sample that holds the corners."""

from __future__ import annotations

import random
from functools import lru_cache

from fsr.contract.flags import at_some_places
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.records import Launch, Role, ScalarArgument

INT_LIMIT = 2**31 - 1
SAMPLES = 64


@lru_cache(maxsize=64)
def sample_sizes(contract: Contract) -> tuple[dict[str, int], ...]:
    """Size assignments that cover the corners, the timed values and the space between, with positions that sizes tell
    the limits of at either end or between: fixed for a contract."""
    chance = random.Random(20)
    found = [{s.name: v for s, v in zip(contract.sizes, row, strict=True)} for row in _corners(contract)]
    found += contract.timed_sizes()
    for _ in range(SAMPLES):
        found.append({s.name: _draw(chance, s.minimum, s.maximum) for s in contract.sizes})
    return tuple({**row, **one} for row in found for one in at_some_places(contract, row))


def _corners(contract: Contract) -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = [()]
    for size in contract.sizes[:4]:
        near = {size.minimum, min(size.minimum + 1, size.maximum), size.maximum}
        rows = [(*row, value) for row in rows for value in sorted(near)]
    rest = tuple(s.maximum for s in contract.sizes[4:])
    return [(*row, *rest) for row in rows]


def _draw(chance: random.Random, low: int, high: int) -> int:
    """Small values as often as large ones, so that remainders of small sizes are met too."""
    if high - low < 8 or chance.random() < 0.5:
        return chance.randint(low, min(high, low + 2048))
    return chance.randint(low, high)


@lru_cache(maxsize=4096)  # moves ask the same again, each of a hundred samples
def always(contract: Contract, condition: str) -> bool:
    """Whether a size expression is true for every sampled assignment. False when it does not evaluate."""
    try:
        return all(evaluate_int(condition, sizes) for sizes in sample_sizes(contract))
    except ContractError:
        return False


def ever(contract: Contract, condition: str) -> bool:
    """Whether a size expression is true for any sampled assignment. False when it does not evaluate."""
    try:
        return any(evaluate_int(condition, sizes) for sizes in sample_sizes(contract))
    except ContractError:
        return False


def passed_text(contract: Contract, argument: str | ScalarArgument) -> str:
    """The size expression of a number that a launch is passed; '' for what is none."""
    if isinstance(argument, ScalarArgument):
        return argument.value
    own = next((a for a in contract.args if a.name == argument and a.role is Role.SCALAR), None)
    return own.value or "" if own is not None else ""


def constant_of(contract: Contract, text: str) -> int | None:
    """The number that a size expression is at every sampled assignment; None where it is none, or not always one."""
    if text.strip().isdigit():
        return int(text)
    found = largest(contract, text)
    return found if found is not None and always(contract, f"({text}) == {found}") else None


@lru_cache(maxsize=4096)
def largest(contract: Contract, text: str) -> int | None:
    """The largest value of a size expression over the samples, the maximum of every size among them."""
    try:
        return max(evaluate_int(text, sizes) for sizes in sample_sizes(contract))
    except (ContractError, ValueError):
        return None


def largest_timed(contract: Contract, text: str) -> int | None:
    """The largest value of a size expression over the timed configurations; None when it does not evaluate."""
    try:
        return max(evaluate_int(text, sizes) for sizes in contract.timed_sizes())
    except (ContractError, ValueError):
        return None


def timed_blocks(contract: Contract, launch: Launch) -> int:
    """How many blocks a launch has over the timed configurations, the most; 0 when that does not evaluate."""
    return largest_timed(contract, " * ".join(f"({extent})" for extent in launch.grid)) or 0


def one_thread_each(grid: str, count: str, threads: int) -> bool:
    """Whether a grid, as a size expression, is written as just the blocks of ``threads`` that ``count`` needs."""
    grid, count = grid.replace(" ", ""), count.replace(" ", "")
    return grid in (f"ceil_div({count},{threads})", f"({count}+{threads - 1})//{threads}")
