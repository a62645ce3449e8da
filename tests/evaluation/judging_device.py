"""The host device in the place of one that draws and compares by itself: what a GPU's kernels do, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from fsr.backends.protocol import Array, Buffer, Comparison, Device, Difference
from fsr.records import ConcreteLaunch, Fault, Image


class JudgingHost:
    """``device`` with a judge. prepared: how many plans it was given; read: how many outputs left it for the host."""

    timed, records = False, False

    def __init__(self, device: Device) -> None:
        self._device, self.judge, self.pool = device, _Judge(), _Pool()
        self.prepared = self.read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> _Prepared:
        self.prepared += 1
        return _Prepared(self, self._device, image, launches, buffers)


class _Pool:
    def __init__(self) -> None:
        self.taken: dict[int, Array] = {}

    def take(self, size: int) -> int:
        at = len(self.taken) + 1
        self.taken[at] = np.zeros(size // 8)
        return at

    def give(self, at: int) -> None:
        pass


class _Region:
    def __init__(self, array: Array) -> None:
        self.array, self.count, self.dtype, self.address = array.reshape(-1), array.size, array.dtype, id(self)
        _REGIONS[self.address] = self


_REGIONS: dict[int, _Region] = {}


class _Prepared:
    def __init__(self, owner: JudgingHost, device: Device, image: Image, launches: Any, buffers: Any) -> None:
        self._owner, self._device, self._image, self._launches = owner, device, image, launches
        self._buffers = [replace(b, array=np.array(b.contents()), formula=None) for b in buffers]
        self._got: dict[str, Array] = {}
        self._broken: list[Fault] = []

    def __enter__(self) -> _Prepared:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._got = {}

    def shake(self, name: str, key: int, step: float) -> None:
        buffer = next(b for b in self._buffers if b.name == name)
        moved = 1.0 + step * np.random.default_rng(key).choice([-1.0, 1.0], buffer.array.shape)
        buffer.array[...] = (buffer.array.astype(np.float64) * moved).astype(buffer.array.dtype)

    def run(self, timeout_s: float = 10.0) -> None:
        with self._device.prepare(self._image, self._launches, self._buffers) as prepared:
            prepared.run(timeout_s)
            self._got, self._broken = dict(prepared.read()), list(prepared.violations())

    def read(self) -> dict[str, Array]:
        self._owner.read += 1
        return self._got

    def violations(self) -> list[Fault]:
        return self._broken

    def region(self, name: str) -> _Region:
        return _Region(self._got[name])


class _Judge:
    """As testing.cu: bits first, then a bound from the scale and the original's own error."""

    def __init__(self) -> None:
        self._scales: dict[int, Array] = {}

    def scale(self, at: int, want: _Region, moved: _Region | None, step: float = 1.0) -> None:
        answer = np.abs(want.array.astype(np.float64))
        if moved is None:
            self._scales[at] = answer
            return
        by = np.abs(moved.array.astype(np.float64) - want.array.astype(np.float64)) / step
        self._scales[at] = np.maximum(self._scales[at], by)

    def usual_error(self, want: _Region, truth: int, at: int, how: Comparison) -> tuple[float, float]:
        error = np.abs(want.array - _REGIONS[truth].array) / np.maximum(self._scales[at], 1e-300)
        return float(error.max()), float(np.sqrt(np.mean(error * error)))

    def compare(self, regions: Any, how: Comparison, known: tuple[int, int, float] = (0, 0, 0.0)) -> Difference | None:
        got, want, _ = (r.array for r in regions)
        differs = got.view(np.uint8).reshape(got.size, -1) != want.view(np.uint8).reshape(got.size, -1)
        wrong = differs.any(axis=1)
        bound: Array = np.zeros(got.size)
        if not how.exact and wrong.any():
            truth, at, usual = known
            right = _REGIONS[truth].array if truth else want
            scale = self._scales[at]
            error = np.abs(got.astype(np.float64) - right)
            bound = how.absolute + how.relative * scale + how.times * usual * scale
            wrong &= ~(error <= bound)
        if not wrong.any():
            return None
        first = int(np.flatnonzero(wrong)[0])
        values = float(got[first]), float(want[first])
        return Difference("value", first, int(wrong.sum()), *values, abs(values[0] - values[1]), float(bound[first]))
