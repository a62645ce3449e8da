"""The host device: plans of launches run on the CPU by a child process that may crash."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fsr.backends.host.arena import Arena, Rooms
from fsr.backends.host.child import ChildDied, ChildTimedOut, HostChild
from fsr.backends.host.faults import died
from fsr.backends.host.launches import check_limits
from fsr.backends.host.prepared import HostPrepared, LoadedImage, Memory
from fsr.backends.host.recording import cover, record, watch
from fsr.backends.host.sparse import FarPlan, SparseArena
from fsr.backends.host.tracing import ALL, Part, Trace, trace
from fsr.backends.protocol import AccessProfile, Array, BlockOrder, Buffer, Coverage, DeviceFault
from fsr.backends.toolchain import Toolchain
from fsr.errors import HarnessError
from fsr.hardware.gpus import H200
from fsr.hardware.host_memory import host_memory_bytes
from fsr.records import ConcreteLaunch, DeviceInfo, Fault, FaultKind, Image

DEFAULT_SHARED_BYTES = H200.max_shared_bytes
CONTAINED = "fsr.sandbox.confine:confine_execution"
_IMAGES_KEPT = 64
_PATIENCE = 4.0  # so many times its limit by the clock may a launch take that has not had as much of a busy machine


def open_host_device(*, max_shared_bytes: int = DEFAULT_SHARED_BYTES, contain: str = CONTAINED) -> HostDevice:
    """A host device with the launch limits of an NVIDIA GPU. See HostDevice for ``contain``."""
    return HostDevice(max_shared_bytes=max_shared_bytes, contain=contain)


class HostDevice:
    """Executes host images (a RecordingDevice). Owned by one thread; the child is started on first use and again
    after each crash.

    Args:
        max_shared_bytes: static and dynamic shared memory a block may use.
        contain: 'module:function', called in the child before any candidate is loaded, to confine it; empty for
            resource limits alone.
    """

    timed, records = False, True

    def __init__(self, *, max_shared_bytes: int = DEFAULT_SHARED_BYTES, contain: str = CONTAINED) -> None:
        self.max_shared_bytes = max_shared_bytes
        self._contain = contain
        self._child: HostChild | None = None
        self._generation = 0
        self._rooms = Rooms()
        self._numbers = itertools.count(1)
        self._images: dict[tuple[bytes, bool], LoadedImage] = {}
        self._info = DeviceInfo(
            vendor="host", name=_cpu_name(), arch=platform.machine(), sm_count=None,
            memory_bytes=host_memory_bytes(),
            max_shared_bytes=max_shared_bytes,
        )  # fmt: skip

    @property
    def info(self) -> DeviceInfo:
        """Identity of the CPU."""
        return self._info

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> HostPrepared:
        """As Device.prepare."""
        return self._prepared(image, launches, buffers, partial(Arena, rooms=self._rooms))

    def far(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> FarPlan:
        """As prepare, for buffers that may be larger than memory, of launches whose blocks are run a few at a time."""
        prepared = self._prepared(image, launches, buffers, SparseArena)
        assert isinstance(prepared.arena, SparseArena)
        return FarPlan(prepared, prepared.arena)

    def _prepared(
        self,
        image: Image,
        launches: Sequence[ConcreteLaunch],
        buffers: Sequence[Buffer],
        memory: Callable[[Sequence[Buffer]], Memory],
    ) -> HostPrepared:
        loaded = self.load(image)
        for launch in launches:
            check_limits(launch, image, self.max_shared_bytes)
        try:
            arena = memory(buffers)
        except (OSError, MemoryError) as error:
            raise DeviceFault(Fault(FaultKind.MEMORY, f"the buffers do not fit: {error}")) from None
        prepared = HostPrepared(self, loaded, launches, arena, next(self._numbers))
        try:
            prepared.pack()
            prepared.reset()
        except BaseException:
            prepared.close()
            raise
        return prepared

    def record(
        self,
        image: Image,
        launches: Sequence[ConcreteLaunch],
        buffers: Sequence[Buffer],
        *,
        access_budget: int = 3_000_000,
        timeout_s: float = 20.0,
    ) -> AccessProfile:
        """As RecordingDevice.record."""
        if not image.instrumented:
            raise HarnessError("recording needs an image compiled with instrumented=True")
        with self.prepare(image, launches, buffers) as prepared:
            return record(prepared, access_budget, timeout_s)

    def covering_toolchain(self) -> Toolchain:
        """As RecordingDevice.covering_toolchain."""
        from fsr.backends.host.compiler import HostToolchain

        return HostToolchain(covered=True)

    def cover(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer], timeout_s: float = 20.0
    ) -> Coverage:
        """As RecordingDevice.cover."""
        if not image.instrumented:
            raise HarnessError("what a run goes through needs an image compiled with instrumented=True")
        with self.prepare(image, launches, buffers) as prepared:
            return cover(prepared, timeout_s)

    def watching_toolchain(self) -> Toolchain:
        """As RecordingDevice.watching_toolchain."""
        from fsr.backends.host.compiler import HostToolchain

        return HostToolchain(watched=True)

    def watch(
        self,
        image: Image,
        launches: Sequence[ConcreteLaunch],
        buffers: Sequence[Buffer],
        order: BlockOrder,
        timeout_s: float = 20.0,
    ) -> tuple[tuple[Fault, ...], dict[str, Array]]:
        """As RecordingDevice.watch."""
        if not image.instrumented:
            raise HarnessError("watching needs an image compiled with instrumented=True")
        with self.prepare(image, launches, buffers) as prepared:
            faults = watch(prepared, order, timeout_s)
            return (*faults, *prepared.violations()), prepared.read()

    def trace(
        self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer],
        scalars: Sequence[Sequence[str]], timeout_s: float = 2.0, part: Part = ALL,
    ) -> Trace:  # fmt: skip
        """Run a plan compiled by TracingToolchain once, watched; see fsr.backends.host.tracing.trace."""
        with self.prepare(image, launches, buffers) as prepared:
            return trace(prepared, scalars, timeout_s, part)

    def sm_clock_mhz(self) -> int | None:
        """None: a CPU has no SM clock."""
        return None

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None
        self._rooms.clear()

    # ------------------------------------------------------------ used by HostPrepared and the recording

    @property
    def cpu_s(self) -> float:
        """The CPU time that the child has used; 0 where none runs."""
        return 0.0 if self._child is None else self._child.cpu_s

    @property
    def generation(self) -> int:
        """Counts the children: what was placed in an earlier one is gone. Starts one where none runs."""
        if self._child is None:
            self._child = HostChild(self._contain)
            self._generation += 1
        return self._generation

    def holds(self, generation: int) -> bool:
        """Whether the child of that generation is still running."""
        return self._child is not None and generation == self._generation

    def ask(self, message: Any, files: Sequence[int], timeout_s: float, entry: str) -> Any:
        """Ask the child; its death is a DeviceFault (kind 'hang' or 'crash') unless it left a record: then it is
        returned as ``{"fault": True}`` like any fault."""
        assert self._child is not None
        try:
            return self._child.ask(message, files, timeout_s, _PATIENCE)
        except ChildTimedOut:
            self._child = None
            raise DeviceFault(Fault(FaultKind.HANG, f"{entry} did not end within {timeout_s:g} s")) from None
        except ChildDied as death:
            record, self._child = self._child.fault(), None
            if not record.kind:
                raise DeviceFault(died(death.code, entry)) from None
            return {"fault": True, "record": record}

    def last_fault(self) -> Any:
        """The record that the child's last launch left."""
        assert self._child is not None
        return self._child.fault()

    def load(self, image: Image) -> LoadedImage:
        """Make sure that the child has the image."""
        if image.kind != "host":
            raise HarnessError(f"the host device cannot load an image of kind '{image.kind}'")
        key = (hashlib.sha256(image.data).digest(), image.instrumented)
        loaded = self._images.pop(key, None) or LoadedImage(next(self._numbers), image)
        self._images[key] = loaded  # the most recently used is the last
        self.ensure(loaded)
        while len(self._images) > _IMAGES_KEPT:
            old = self._images.pop(next(iter(self._images)))
            if self.holds(old.generation):
                self.ask({"op": "unload", "image": old.key}, (), 10.0, "unloading")
        return loaded

    def ensure(self, loaded: LoadedImage) -> None:
        """Load the image into the running child unless it is there."""
        if loaded.generation == self.generation:
            return
        file = os.memfd_create("fsr-image")
        try:
            with open(file, "wb", closefd=False) as stream:  # a descriptor has no path
                stream.write(loaded.image.data)
            request = {"op": "load", "image": loaded.key, "symbols": sorted(set(loaded.image.symbols.values()))}
            answer = self.ask(request, [file], 30.0, "loading the image")
        finally:
            os.close(file)
        if "fault" in answer:
            raise DeviceFault(Fault(FaultKind.CRASH, "loading the image crashed"))
        loaded.entries = {symbol: (sizes, kinds) for symbol, (sizes, kinds) in answer["entries"].items()}
        loaded.shared, loaded.dynamic, loaded.base = answer["shared"], answer["dynamic"], answer["base"]
        loaded.generation = self._generation


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
