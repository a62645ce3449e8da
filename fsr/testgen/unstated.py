"""Values that a case holds because the contract does not say that callers never pass them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fsr.contract.model import Argument, Contract
from fsr.hardware.dtypes import doubled, is_float, numpy_dtype
from fsr.records import Role
from fsr.testgen.values import Array, CaseData

HUGE, TINY = 1e15, 1e-15  # beyond what most kernels are written for


@dataclass(frozen=True, slots=True)
class Unstated:
    """An argument without limits, and the huge or tiny value that it holds."""

    argument: str
    value: float

    def __str__(self) -> str:
        return (
            f"{self.argument} holds {self.value:.3g} here and has no limits in the contract: where callers never pass "
            "such values, say with low and high what they pass"
        )


def unstated(contract: Contract, data: CaseData) -> Unstated | None:
    """The first argument without limits whose values are huge or tiny, which may be what is wrong; None where there is
    none."""
    data = data.apart()
    for argument in contract.apart().args:
        limits = argument.constraints
        if argument.role is Role.OUT or argument.value is not None or limits.low is not None or limits.high is not None:
            continue
        if argument.name in data.made:  # by the user, who knows what callers pass
            continue
        for extreme in _extremes(argument, data):
            return Unstated(argument.name, extreme)
    return None


def _extremes(argument: Argument, data: CaseData) -> Iterator[float]:
    """The value of largest magnitude if it is huge, that of smallest if it is tiny."""
    values = _values(argument, data)
    values = values[np.isfinite(values) & (values != 0)]
    if not values.size:
        return
    sizes = np.abs(values)
    if sizes.max() > HUGE:
        yield float(values[sizes.argmax()])
    if sizes.min() < TINY:
        yield float(values[sizes.argmin()])


def _values(argument: Argument, data: CaseData) -> Array:
    if argument.name in data.scalars:
        return np.array([float(data.scalars[argument.name].value)])
    array = data.arrays.get(argument.name, np.zeros(0))
    whole = numpy_dtype(argument.dtype).kind in "iu" or is_float(numpy_dtype(argument.dtype))
    return doubled(array).reshape(-1) if whole else np.zeros(0)
