"""What a contract's function of inputs made for large cases, kept in a folder for the other processes of a run.

A function in Python takes longer for a large case than all runs of it, and several processes need the same: the one
that times, the one that promotes, the recorder's. The folder is the run's own, and goes with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fsr.folders import filled
from fsr.hardware.dtypes import numpy_dtype
from fsr.identity import digest
from fsr.records import Case

Array = np.ndarray[Any, Any]

LEAST_BYTES = 1 << 20  # of a case's arrays together: less is made as quickly as it is read
FOLDER_SHARE = 4  # of what is free where the folder lies


def kept(folder: Path, case: Case, make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """What ``make`` gives for a case, from the folder where another process has kept it: then pages of files, written
    to by nobody, as changes stay with the process that makes them. Raises what ``make`` raises."""
    place = folder / digest([*map(list, case.sizes), case.family, case.seed])
    with suppress(OSError, ValueError):
        return _read(place)
    made = make()
    size = sum(array.nbytes for array in made.values())
    if size >= LEAST_BYTES and all(array.size for array in made.values()):
        with suppress(OSError):
            if size <= shutil.disk_usage(folder).free // FOLDER_SHARE:
                filled(place, partial(_write, made=made))
    return made


def _read(place: Path) -> dict[str, Array]:
    """Raises OSError where nothing is kept."""
    found = dict[str, Array]()
    for line in (place / "arrays").read_text().splitlines():
        file, name, dtype, *extents = line.split()
        shape = tuple(map(int, extents))
        found[name] = np.asarray(np.memmap(place / file, numpy_dtype(dtype), mode="c", shape=shape))
    return found


def _write(place: Path, made: Mapping[str, Array]) -> None:
    lines = list[str]()
    for number, (name, array) in enumerate(made.items()):
        np.ascontiguousarray(array).tofile(place / str(number))
        lines.append(" ".join([str(number), name, array.dtype.name, *map(str, array.shape)]))
    (place / "arrays").write_text("\n".join(lines) + "\n")
