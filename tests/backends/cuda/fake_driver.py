"""A driver over ordinary memory: kernels are Python functions, time is counted, hangs and crashes are scripted."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsr.backends.cuda.checks import CHECK_ENTRY, NOTHING
from fsr.backends.cuda.driver import DriverError
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Image, Resources
from fsr.testgen.draws import Draw, Kind

CAPACITY = 1 << 30
BYTES_A_NS = 2000.0  # a fake 2 TB/s, counted once for a fill and twice for a copy
FAR = 1 << 40  # an index beyond this is an illegal access


def at(address: int, count: int, dtype: Any) -> Any:
    """Device memory as a NumPy array."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


@dataclass
class FakeKernel:
    body: Callable[..., None]
    parameters: str  # struct format
    cost_ns: float = 1000.0
    static_shared: int = 0
    max_threads: int = 1024


def _check(_driver: FakeDriver, grid: Any, zones: int, first: int) -> None:
    for index in range(grid[1]):
        address, expected, size, value = at(zones + 32 * index, 4, np.uint64).tolist()
        want = at(expected, size, np.uint8) if expected else np.full(size, value, np.uint8)
        wrong = np.flatnonzero(at(address, size, np.uint8) != want)
        at(first + 8 * index, 1, np.uint64)[0] = wrong[0] if wrong.size else NOTHING


def _formula(words: int) -> tuple[Draw, np.dtype[Any]]:
    """The draw and its type of a parameter block."""
    w = at(words, 12, np.uint64).tolist()
    reals = at(words + 96, 5, np.float64).tolist()
    dtype = numpy_dtype(("float16", "bfloat16", "float32", "float64", f"int{8 * w[7]}")[w[6]])
    table = at(words + 136, w[4], np.float64 if w[6] < 4 and w[3] != Kind.BITS else np.uint64).tolist()
    draw = Draw(
        Kind(w[3]), w[0], w[1], *reals[:3], w[8], w[9], w[2], tuple(table), (), (reals[3], reals[4]), bool(w[10])
    )
    return draw, dtype


def _draw(_driver: FakeDriver, _grid: Any, out: int, words: int) -> None:
    draw, dtype = _formula(words)
    at(out, draw.count * dtype.itemsize, np.uint8)[:] = draw.values(dtype).view(np.uint8)


def _drawn(_driver: FakeDriver, _grid: Any, address: int, words: int, first: int) -> None:
    draw, dtype = _formula(words)
    got = at(address, draw.count * dtype.itemsize, np.uint8).reshape(draw.count, -1)
    other = np.flatnonzero((got != draw.values(dtype).view(np.uint8).reshape(draw.count, -1)).any(axis=1))
    if other.size:
        at(first, 1, np.uint64)[0] = other[0]


def _copy(_driver: FakeDriver, _grid: Any, x: int, y: int, n: int) -> None:
    at(y, n, np.float32)[:] = at(x, n, np.float32)


def _scale(_driver: FakeDriver, _grid: Any, y: int, by: float, n: int) -> None:
    at(y, n, np.float32)[:] *= np.float32(by)


def _add_to(_driver: FakeDriver, _grid: Any, x: int, total: int, n: int) -> None:
    at(total, 1, np.float64)[0] += at(x, n, np.float32).sum()


def _store_at(driver: FakeDriver, _grid: Any, y: int, value: float, index: int) -> None:
    if abs(index) > FAR:
        driver.crashed = "an illegal memory access was encountered"
    else:
        at(y + 4 * index, 1, np.float32)[0] = value


def _address(_driver: FakeDriver, _grid: Any, x: int, y: int) -> None:
    at(y, 1, np.uint64)[0] = x


def _mixed(_driver: FakeDriver, _grid: Any, *values: Any) -> None:
    at(values[-1], 5, np.float64)[:] = values[:-1]


def _nothing(_driver: FakeDriver, _grid: Any, _y: int) -> None:
    pass


def _spin(driver: FakeDriver, _grid: Any, _y: int) -> None:
    driver.hung = True


def _read_gain(driver: FakeDriver, _grid: Any, y: int) -> None:
    at(y, 4, np.float32)[:] = at(driver.variable("", "gain"), 4, np.float32)


KERNELS = {
    "read_gain": FakeKernel(_read_gain, "Q"),
    CHECK_ENTRY: FakeKernel(_check, "QQ"),
    "fsr_draw": FakeKernel(_draw, "QQ"),
    "fsr_drawn": FakeKernel(_drawn, "QQQ"),
    "copy": FakeKernel(_copy, "QQi"),
    "scale": FakeKernel(_scale, "Qfi"),
    "add_to": FakeKernel(_add_to, "QQi"),
    "store_at": FakeKernel(_store_at, "Qfq"),
    "address": FakeKernel(_address, "QQ"),
    "mixed": FakeKernel(_mixed, "Bdhq?Q"),
    "nothing": FakeKernel(_nothing, "Q"),
    "spin": FakeKernel(_spin, "Q"),
    "shared40k": FakeKernel(_nothing, "Q", static_shared=40 * 1024),
    "narrow": FakeKernel(_nothing, "Q", max_threads=256),
}


def fake_image(*entries: str, data: bytes = b"fake") -> Image:
    """An image whose kernels are those of KERNELS."""
    names = entries or tuple(KERNELS)
    return Image("cubin", "sm_90", data, {name: name for name in names}, {name: Resources() for name in names})


class FakeDriver:
    """See fsr.backends.cuda.driver.Driver. ``calls`` counts calls by name; ``now_ns`` is the device's clock."""

    name = "Fake GPU"
    pci_bus_id = "0000:00:00.0"
    compute_capability = (9, 0)
    runtime = "fake 1"
    graphs = True

    def __init__(self, memory_bytes: int = CAPACITY) -> None:
        self.memory_bytes = memory_bytes
        limits = {"MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535}
        blocks = {"MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64}
        self.attributes = {
            **limits, **blocks, "MAX_THREADS_PER_BLOCK": 1024, "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "MULTIPROCESSOR_COUNT": 132, "L2_CACHE_SIZE": 50 << 20,
            "CLOCK_RATE": 1_980_000, "MEMORY_CLOCK_RATE": 3_201_000,
        }  # fmt: skip
        self.blocks: dict[int, Any] = {}
        self.now_ns = 0.0
        self.hung, self.crashed, self.abandoned, self.closed = False, "", False, False
        self.loaded: list[bytes] = []
        self.opted_in: dict[str, int] = {}
        self.log: list[str] = []
        self.variables: dict[str, Any] = {}  # by lowered symbol, 64 bytes each

    @property
    def allocated_bytes(self) -> int:
        return sum(block.nbytes for block in self.blocks.values())

    def _ok(self) -> None:
        assert not self.closed, "call after close"
        assert not self.abandoned, "call after the device was given up"
        if self.crashed:
            raise DriverError("crash", self.crashed)

    def alloc(self, size_bytes: int) -> int:
        self._ok()
        self.log.append("alloc")
        if self.allocated_bytes + size_bytes > self.memory_bytes:
            raise DriverError("memory", "cuMemAlloc failed: out of memory")
        raw = np.full(size_bytes + 512, 0xEE, np.uint8)
        address = -(-raw.ctypes.data // 512) * 512
        self.blocks[address] = raw
        return address

    def free(self, address: int) -> None:
        self._ok()
        del self.blocks[address]

    def fill(self, address: int, value: int, size_bytes: int) -> None:
        self._ok()
        self.log.append("fill")
        at(address, size_bytes, np.uint8)[:] = value
        self.now_ns += size_bytes / BYTES_A_NS

    def copy(self, to: int, source: int, size_bytes: int) -> None:
        self._ok()
        at(to, size_bytes, np.uint8)[:] = at(source, size_bytes, np.uint8)
        self.now_ns += 2 * size_bytes / BYTES_A_NS

    def upload(self, to: int, array: Any) -> None:
        self._ok()
        self.log.append("upload")
        at(to, array.nbytes, np.uint8)[:] = array.reshape(-1).view(np.uint8)

    def download(self, array: Any, source: int) -> None:
        self._ok()
        array.reshape(-1).view(np.uint8)[:] = at(source, array.nbytes, np.uint8)

    def load(self, image: bytes) -> Any:
        self._ok()
        if image == b"broken":
            raise DriverError("image", "cuModuleLoadData failed: no binary for gpu")
        self.loaded.append(image)
        return image

    def function(self, _module: Any, symbol: str) -> Any:
        if symbol not in KERNELS:
            raise DriverError("image", f"cuModuleGetFunction failed: not found: {symbol}")
        return symbol

    def variable(self, _module: Any, symbol: str) -> int:
        return int(self.variables.setdefault(symbol, np.zeros(64, np.uint8)).ctypes.data)

    def function_limits(self, function: Any) -> tuple[int, int]:
        return KERNELS[function].max_threads, KERNELS[function].static_shared

    def allow_dynamic_shared(self, function: Any, size_bytes: int) -> None:
        self.opted_in[function] = size_bytes

    def launch(self, function: Any, grid: Any, block: Any, arguments: bytes, shared_bytes: int) -> None:
        self._ok()
        assert min(*grid, *block) > 0
        self.log.append(function)
        kernel = KERNELS[function]
        values = struct.unpack(kernel.parameters, arguments)  # native alignment, as C has it
        kernel.body(self, grid, *values)
        self.now_ns += kernel.cost_ns

    def event(self) -> Any:
        return [0.0]

    def record(self, event: Any) -> None:
        event[0] = self.now_ns

    def done(self, _event: Any) -> bool:
        self._ok()
        return not self.hung

    def elapsed_ns(self, start: Any, end: Any) -> float:
        return float(end[0] - start[0])

    def synchronize(self) -> None:
        self._ok()

    def graph(self, queue: Any) -> Any:
        return queue if self.graphs else None

    def abandon(self) -> None:
        self.abandoned = True

    def close(self) -> None:
        self._ok()
        self.closed = True
