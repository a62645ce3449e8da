"""Arrays on their way from one side to another: raw bytes in a folder, with their names, types and shapes beside."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fsr.backends.protocol import Array
from fsr.hardware.dtypes import numpy_dtype

_INDEX = "arrays.json"


def put(folder: Path, arrays: Mapping[str, Array], dtypes: Mapping[str, str]) -> None:
    """Write arrays to a folder; ``dtypes``: their contract names."""
    folder.mkdir(parents=True, exist_ok=True)
    index = {name: [dtypes[name], list(array.shape)] for name, array in arrays.items()}
    for name, array in arrays.items():
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(folder / name)
    (folder / _INDEX).write_text(json.dumps(index))


def described(folder: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name to dtype and shape of what :func:`put` wrote."""
    index = json.loads((folder / _INDEX).read_text())
    return {name: (dtype, tuple(shape)) for name, (dtype, shape) in index.items()}


def take(folder: Path) -> dict[str, Array]:
    """What :func:`put` wrote."""
    return {
        name: np.fromfile(folder / name, np.uint8).view(numpy_dtype(dtype)).reshape(shape)
        for name, (dtype, shape) in described(folder).items()
    }


def size_bytes(folder: Path) -> int:
    """Bytes of all of them."""
    return sum(numpy_dtype(t).itemsize * math.prod(shape) for t, shape in described(folder).values())
