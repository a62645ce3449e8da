"""The work of testing on the device: drawing arrays, and comparing outputs, with fsr's own kernels (testing.cu)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fsr.backends.cuda.driver import Driver, Function
from fsr.backends.cuda.memory import Pool
from fsr.backends.protocol import Comparison, Difference, Formula
from fsr.hardware.dtypes import is_float

KINDS = ("", "value", "non-finite", "unwritten", "written")  # of a difference, by what the kernel calls it
NOTHING = 2**64 - 1
_TYPES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3}
_BLOCKS, _THREADS = 1024, 128
_ROW = np.dtype([("kind", "<u8"), ("index", "<u8"), ("count", "<u8"), ("excess", "<f8"), ("got", "<f8"),
                 ("expected", "<f8"), ("error", "<f8"), ("bound", "<f8")])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Region:
    """An array on the device."""

    address: int
    count: int
    dtype: np.dtype[Any]

    @property
    def type(self) -> int:
        """The kernels' number of its type."""
        return _TYPES[self.dtype.name] if is_float(self.dtype) else 4


class Judge:
    """The kernels, loaded once. Owned by the device."""

    def __init__(self, driver: Driver, pool: Pool) -> None:
        self._driver, self._pool = driver, pool

    @cached_property
    def _module(self) -> Any:
        return self._driver.load(Path(__file__).with_name("testing.ptx").read_bytes() + b"\0")

    def _launch(self, entry: str, count: int, parameters: bytes, *addresses: int, last: int | None = None) -> None:
        """Queue a kernel over ``count`` elements; its parameter block stands behind ``addresses``, before ``last``."""
        function: Function = self._driver.function(self._module, entry)
        words = np.frombuffer(parameters, np.uint8)
        block = self._pool.take(len(words))
        self._driver.upload(block, words)
        pointers = [*addresses, block, *(() if last is None else (last,))]
        blocks = max(min(-(-count // _THREADS), _BLOCKS), 1)
        self._driver.launch(function, (blocks, 1, 1), (_THREADS, 1, 1), np.array(pointers, np.uint64).tobytes(), 0)
        self._pool.give(block)  # overwritten behind the launch, in the order of the stream

    def draw(self, address: int, formula: Formula, dtype: np.dtype[Any]) -> None:
        """Queue drawing an array."""
        if formula.count:
            self._launch("fsr_draw", formula.count, formula.parameters(dtype), address)

    def first_other(self, address: int, formula: Formula, dtype: np.dtype[Any]) -> int | None:
        """The first element that is not as the formula says."""
        first = np.full(1, NOTHING, np.uint64)
        at = self._pool.take(first.nbytes)
        self._driver.upload(at, first)
        self._launch("fsr_drawn", formula.count, formula.parameters(dtype), address, last=at)
        self._driver.download(first, at)
        self._pool.give(at)
        return None if first[0] == NOTHING else int(first[0])

    def shake(self, region: Region, key: int, step: float, bounds: tuple[float, float]) -> None:
        """Queue moving each element by up to ``step`` of itself."""
        words = struct.pack("<4Q3d", region.count, region.type, region.dtype.itemsize, key, step, *bounds)
        self._launch("fsr_shake", region.count, words, region.address)

    def scale(self, scale: int, want: Region, moved: Region | None, step: float = 1.0) -> None:
        """Queue the scale of errors (float64 at ``scale``): begun from the answer, or widened by a perturbed run."""
        words = struct.pack("<4Qd", want.count, want.type, want.dtype.itemsize, int(moved is None), step)
        self._launch("fsr_scale", want.count, words, scale, want.address, (moved or want).address)

    def usual_error(self, want: Region, truth: int, scale: int, how: Comparison) -> tuple[float, float]:
        """The original's largest error relative to its scale, and the root of its mean square."""
        rows = np.zeros((_BLOCKS, 3))
        at = self._pool.take(rows.nbytes)
        self._driver.fill(at, 0, rows.nbytes)
        self._launch("fsr_errors", want.count, _words(want, how, 0.0, True), want.address, truth, scale, last=at)
        self._driver.download(rows, at)
        self._pool.give(at)
        number = rows[:, 2].sum()
        return (float(rows[:, 0].max()), math.sqrt(float(rows[:, 1].sum() / number))) if number else (0.0, 0.0)

    def compare(
        self, outputs: tuple[Region, Region, Region], how: Comparison, known: tuple[int, int, float] = (0, 0, 0.0)
    ) -> Difference | None:
        """The worst difference of the gravest kind; None where every element is right. ``outputs``: the candidate's,
        the original's and its second run. ``known``: addresses of the float64 answer and of the scale, and the
        original's usual error; without a scale an element is right within the absolute floor and what two runs of the
        original differ by."""
        (got, want, again), (truth, scale, usual) = outputs, known
        rows = np.zeros(_BLOCKS, _ROW)
        at = self._pool.take(rows.nbytes)
        self._driver.fill(at, 0, rows.nbytes)
        words = _words(want, how, usual, bool(truth), exact=how.exact or not scale)
        pointers = (got.address, want.address, again.address, truth or want.address, scale or want.address)
        self._launch("fsr_compare", want.count, words, *pointers, last=at)
        self._driver.download(rows, at)
        self._pool.give(at)
        return _worst(rows)


def _words(want: Region, how: Comparison, usual: float, precise: bool, exact: bool = False) -> bytes:
    return struct.pack(
        "<11Q5d", want.count, want.type, want.dtype.itemsize, int(exact), int(precise), int(how.pure), *how.poisons,
        int(how.sums), int(want.dtype.kind == "i"), how.relative, how.absolute, usual, how.times, how.near,
    )  # fmt: skip


def _worst(rows: np.ndarray[Any, Any]) -> Difference | None:
    kind = int(rows["kind"].max())
    if not kind:
        return None
    gravest: Sequence[Any] = rows[rows["kind"] == kind]
    worst = max(gravest, key=lambda row: float(row["excess"]))
    count = int(sum(int(row["count"]) for row in gravest))
    values = (float(worst[name]) for name in ("got", "expected", "error", "bound"))
    return Difference(KINDS[kind], int(worst["index"]), count, *values)
