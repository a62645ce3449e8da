"""Concrete launches as the driver takes them: limits checked beforehand, arguments packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fsr.backends.cuda.driver import Driver, DriverError, Function, Module
from fsr.backends.protocol import DeviceFault, constant_fault
from fsr.emulator.elf import find_variable
from fsr.errors import HarnessError
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import ConcreteLaunch, Fault, FaultKind, Image, ParameterBlock, ScalarValue


@dataclass(frozen=True, slots=True)
class Loaded:
    """A launch with its kernel looked up."""

    function: Function
    launch: ConcreteLaunch
    block: ParameterBlock | None = None


def refused(detail: str) -> DeviceFault:
    """A launch that is refused before it runs."""
    return DeviceFault(Fault(FaultKind.LAUNCH, detail))


def fault_of(error: DriverError) -> DeviceFault:
    """What a driver's error means for the candidate."""
    if error.kind == "memory":
        return DeviceFault(Fault(FaultKind.MEMORY, f"does not fit on the device: {error}"))
    if error.kind == "crash":
        return DeviceFault(Fault(FaultKind.CRASH, str(error)), fatal=True)
    return refused(str(error))


def load_launch(driver: Driver, module: Module, image: Image, launch: ConcreteLaunch) -> Loaded:
    """Look the kernel up and check the launch against kernel and device. Raises DeviceFault kind 'launch'."""
    if launch.entry not in image.symbols:
        raise HarnessError(f"the image has no entry {launch.entry!r}, only {', '.join(image.symbols)}")
    try:
        function = driver.function(module, image.symbols[launch.entry])
        check_limits(driver, function, launch)
    except DriverError as error:
        if error.kind == "crash":
            raise
        raise refused(f"{launch.entry}: {error}") from error
    return Loaded(function, launch, image.blocks.get(launch.entry))


def load_launches(driver: Driver, module: Module, image: Image, launches: Sequence[ConcreteLaunch]) -> list[Loaded]:
    """All launches of a plan; those that differ in their arguments only are looked up once. Raises DeviceFault."""
    known: dict[ConcreteLaunch, Loaded] = {}
    loaded = []
    for launch in launches:
        alike = replace(launch, args=())
        if alike not in known:
            known[alike] = load_launch(driver, module, image, launch)
        loaded.append(replace(known[alike], launch=launch))
    return loaded


def constant_addresses(
    driver: Driver, module: Module, image: Image, wanted: Mapping[str, int], entry: str = ""
) -> dict[str, int]:
    """Where the ``__constant__`` variables lie that callers fill, as ``entry`` sees them; ``wanted``: bytes by name.
    Raises DeviceFault kind 'launch' for a module that lacks one."""
    found = {}
    for name, size_bytes in wanted.items():
        variable = find_variable(image.data, name, entry)
        if variable is None or variable[2] != size_bytes:
            raise constant_fault(name, size_bytes, variable[2] if variable else None)
        found[name] = driver.variable(module, variable[0])
    return found


def check_limits(driver: Driver, function: Function, launch: ConcreteLaunch) -> None:
    """Refuse what the device cannot launch, saying which limit; opt in to large shared memory."""
    limits = driver.attributes
    for what, dims in (("grid", launch.grid), ("block", launch.block)):
        for axis, size in zip("XYZ", dims, strict=True):
            most = limits[f"MAX_{what.upper()}_DIM_{axis}"]
            if not 1 <= size <= most:
                raise refused(f"{launch.entry}: {what}.{axis.lower()} is {size}, this device takes 1 to {most}")
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    most_threads, static = driver.function_limits(function)
    if threads > min(most_threads, limits["MAX_THREADS_PER_BLOCK"]):
        raise refused(
            f"{launch.entry}: {threads} threads a block; the kernel takes at most {most_threads} "
            f"(registers and launch bounds), the device {limits['MAX_THREADS_PER_BLOCK']}"
        )
    shared = static + launch.shared_bytes
    most_shared = max_shared_bytes(driver)
    if launch.shared_bytes < 0 or shared > most_shared:
        raise refused(f"{launch.entry}: {shared} bytes of shared memory a block; the device has {most_shared}")
    if shared > STATIC_SHARED_BYTES:
        driver.allow_dynamic_shared(function, launch.shared_bytes)


def max_shared_bytes(driver: Driver) -> int:
    """Static and dynamic shared memory that a block can have after opting in."""
    limits = driver.attributes
    return limits.get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") or limits["MAX_SHARED_MEMORY_PER_BLOCK"]


def scalar_bytes(scalar: ScalarValue) -> bytes:
    """A scalar argument in its C representation. Raises DeviceFault kind 'launch' for a value that its type cannot
    hold (a size beyond an int, for example)."""
    return _whole_bytes(scalar.dtype, scalar.value) if type(scalar.value) is int else _bytes(scalar.dtype, scalar.value)


@lru_cache(maxsize=4096)
def _whole_bytes(dtype: str, value: int) -> bytes:
    """The same of a whole number. Kept: a plan of a thousand launches has the same ones in each."""
    return _bytes(dtype, value)


def _bytes(dtype: str, value: float) -> bytes:
    try:
        with np.errstate(over="ignore"):
            return np.array(value, numpy_dtype(dtype)).tobytes()
    except (OverflowError, ValueError) as error:
        raise refused(f"the argument {value} does not fit in {dtype}") from error


def pack_arguments(launch: ConcreteLaunch, addresses: Mapping[str, int], block: ParameterBlock | None = None) -> bytes:
    """The parameter block: every argument at a multiple of its own size, in order, or where ``block`` says."""
    raws = (addresses[a].to_bytes(8, "little") if isinstance(a, str) else scalar_bytes(a) for a in launch.args)
    if block is not None:
        return block.packed(list(raws))
    packed = bytearray()
    for raw in raws:
        packed += bytes(-len(packed) % len(raw)) + raw
    return bytes(packed)
