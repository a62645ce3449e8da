"""The CUDA device: one GPU, one context, one stream, owned by one worker process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

from fsr.backends.cuda.checks import CHECK_ENTRY, Checker, Zone, check_module
from fsr.backends.cuda.clocks import Clocks
from fsr.backends.cuda.driver import Driver, DriverError, Function, Module
from fsr.backends.cuda.judging import Judge
from fsr.backends.cuda.launching import constant_addresses, fault_of, load_launches, max_shared_bytes
from fsr.backends.cuda.memory import Originals, Pool
from fsr.backends.cuda.prepared import CudaPrepared
from fsr.backends.protocol import Buffer
from fsr.errors import HarnessError
from fsr.records import ConcreteLaunch, DeviceInfo, Image

MIN_FLUSH_BYTES = 128 << 20
MAX_MODULES = 64
_COPY_BYTES = 1 << 30  # several times any L2, about 0.5 ms on an H200


class CudaDevice:
    """GPU number ``index``. See :class:`fsr.backends.protocol.TimedDevice`.

    After a fault that is ``fatal`` the context is lost or a kernel still runs: the process is to end at once
    (``os._exit``, or the supervisor's SIGKILL), since a normal exit could wait for the GPU.

    Raises MissingToolError without PyCUDA, a driver or that GPU. ``driver`` stands in for the GPU in tests.
    """

    timed, records = True, False

    def __init__(self, index: int = 0, *, driver: Driver | None = None) -> None:
        if driver is None:
            driver = _open_driver(index)
        self.driver = driver
        self.broken = False
        self._clocks = Clocks(driver.pci_bus_id)
        self._modules: OrderedDict[bytes, Module] = OrderedDict()
        self.l2_bytes = driver.attributes.get("L2_CACHE_SIZE", 0)
        self.pool = Pool(driver, limit_bytes=driver.memory_bytes // 4)
        self.originals = Originals(driver, self.pool, limit_bytes=driver.memory_bytes // 8)
        self.judge = Judge(driver, self.pool)
        self._flush_bytes = max(2 * self.l2_bytes, MIN_FLUSH_BYTES)
        self._flush_block: int | None = None
        self._bandwidth: float | None = None

    @cached_property
    def info(self) -> DeviceInfo:
        """See Device."""
        major, minor = self.driver.compute_capability
        attributes, readings = self.driver.attributes, self._clocks.first
        return DeviceInfo(
            vendor="nvidia",
            name=self.driver.name,
            arch=f"sm_{major}{minor}",
            sm_count=attributes["MULTIPROCESSOR_COUNT"],
            memory_bytes=self.driver.memory_bytes,
            sm_clock_mhz=readings.max_sm_clock_mhz or attributes.get("CLOCK_RATE", 0) // 1000 or None,
            memory_clock_mhz=readings.max_memory_clock_mhz or attributes.get("MEMORY_CLOCK_RATE", 0) // 1000 or None,
            l2_bytes=self.l2_bytes or None,
            power_limit_w=readings.power_limit_w,
            driver=readings.driver,
            runtime=self.driver.runtime,
            mig=readings.mig,
            max_shared_bytes=max_shared_bytes(self.driver),
            max_threads=attributes["MAX_THREADS_PER_BLOCK"],
        )

    @cached_property
    def check_function(self) -> Function:
        """fsr's own kernel that looks at guard zones and inputs."""
        self._check_module = self.driver.load(check_module())
        return self.driver.function(self._check_module, CHECK_ENTRY)

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> CudaPrepared:
        """See Device."""
        self._require_working()
        if image.kind != "cubin":
            raise HarnessError(f"an image of kind {image.kind!r} came to a CUDA device, which takes 'cubin'")
        try:
            module = self._module(image)
            loaded = load_launches(self.driver, module, image, launches)
            wanted = {buffer.symbol: buffer.array.nbytes for buffer in buffers if buffer.symbol}
            constants = constant_addresses(self.driver, module, image, wanted, launches[0].entry if launches else "")
        except DriverError as error:
            fault = fault_of(error)
            if fault.fatal:
                self.give_up()
            raise fault from error
        return CudaPrepared(self, loaded, buffers, constants)

    def _module(self, image: Image) -> Module:
        """The image loaded; the most recently used stay loaded."""
        key = hashlib.blake2b(image.data, digest_size=16).digest()
        if key not in self._modules:
            self._modules[key] = self.driver.load(image.data)
            while len(self._modules) > MAX_MODULES:
                self._modules.popitem(last=False)
        self._modules.move_to_end(key)
        return self._modules[key]

    def flush_l2(self, times: int = 1) -> None:
        """Queue writes of twice the L2 (128 MiB at least), which leaves no line of a buffer in it, and then reads of
        as much elsewhere, which leaves no dirty line either: those would be written back inside the timed region and
        charged to whoever is timed, the more the less it hides its latency."""
        if self._flush_block is None:
            self._flush_block = self.pool.take(2 * self._flush_bytes)
            self.driver.fill(self._flush_block, 0, 2 * self._flush_bytes)
            zone = Zone(self._flush_block + self._flush_bytes, 0, self._flush_bytes)
            self._sweep = Checker(self.driver, self.pool, self.check_function, [zone])
        for _ in range(times):
            self.driver.fill(self._flush_block, 0, self._flush_bytes)
            self._sweep.launch()

    def copy_bandwidth(self) -> float:
        """See TimedDevice: the best of nine copies of up to 1 GiB, after two to warm up."""
        if self._bandwidth is None:
            self._require_working()
            self._bandwidth = self._measure_bandwidth()
        return self._bandwidth

    def _measure_bandwidth(self) -> float:
        size = min(_COPY_BYTES, self.driver.memory_bytes // 16)
        source, to = self.pool.take(size), self.pool.take(size)
        best = 0.0
        for attempt in range(11):
            start, end = self.driver.event(), self.driver.event()
            self.driver.fill(source, attempt + 1, size)  # queued before, so that the copy starts without a gap
            self.driver.record(start)
            self.driver.copy(to, source, size)
            self.driver.record(end)
            self.driver.synchronize()
            if attempt >= 2:
                best = max(best, 2 * size / (self.driver.elapsed_ns(start, end) * 1e-9))
        self.pool.give(source)
        self.pool.give(to)
        return best

    def sm_clock_mhz(self) -> int | None:
        """See Device."""
        return self._clocks.sm_clock_mhz()

    def give_up(self) -> None:
        """The context is lost: touch the GPU no more."""
        self.broken = True
        self.driver.abandon()

    def close(self) -> None:
        """See Device."""
        self._clocks.close()
        if not self.broken:
            self.broken = True
            self._modules.clear()
            self.__dict__.pop("check_function", None)
            self.__dict__.pop("_check_module", None)
            self.driver.close()

    def _require_working(self) -> None:
        if self.broken:
            raise HarnessError("this device was closed or lost to a fatal fault", fix="start a fresh worker process")


def _open_driver(index: int) -> Driver:
    from fsr.backends.cuda.pycuda_driver import PyCudaDriver

    return PyCudaDriver(index)
