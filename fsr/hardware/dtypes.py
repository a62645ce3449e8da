"""Element types by their contract name: NumPy's own, and bfloat16 from ml_dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from fsr.errors import ContractError


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """Spacing at 1, largest finite value and smallest normal value of a floating type."""

    eps: float
    largest: float
    tiny: float

    @property
    def smallest(self) -> float:
        """The smallest denormal value: the spacing below ``tiny``."""
        return self.tiny * self.eps


@lru_cache(maxsize=64)
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy type of a contract dtype. Raises ContractError for a name that is none."""
    try:
        return np.dtype(getattr(ml_dtypes, name) if name.startswith(("bfloat", "float8")) else name)
    except (TypeError, AttributeError):
        raise ContractError(
            f"{name!r} is no element type",
            expected="a NumPy name such as float32, int32, uint8, bool, or bfloat16",
            fix="correct the dtype in the contract",
        ) from None


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the type is a floating one, those of ml_dtypes included (NumPy calls them void)."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float8"))


@lru_cache(maxsize=64)
def float_limits(dtype: np.dtype[Any]) -> FloatLimits:
    """The limits of a floating type."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return FloatLimits(float(info.eps), float(info.max), float(info.tiny))


def doubled(array: np.ndarray[Any, Any], *, copy: bool = False) -> np.ndarray[Any, Any]:
    """The array in float64; itself where it is that, and no ``copy`` is wanted. A signalling NaN, which becomes another
    one on the way, is no reason to warn."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64, copy=copy)


def bits_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array's memory as unsigned integers of its element size (complex-like sizes as bytes)."""
    size = array.dtype.itemsize
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(size, np.uint8)
    return np.ascontiguousarray(array).view(unsigned)
