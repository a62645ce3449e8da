"""Checks a launch against CUDA's limits and packs it for the child."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsr.backends.protocol import DeviceFault
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.limits import MAX_BLOCK, MAX_GRID, MAX_THREADS
from fsr.records import NULL_POINTER, ConcreteLaunch, Fault, FaultKind, Image, ParameterBlock, ScalarValue


def refuse(entry: str, why: str) -> DeviceFault:
    """A launch that CUDA would refuse."""
    return DeviceFault(Fault(FaultKind.LAUNCH, f"{entry}: {why}"))


def check_limits(launch: ConcreteLaunch, image: Image, max_shared_bytes: int) -> None:
    """Raises DeviceFault kind 'launch' for a launch that no device would take."""
    if launch.entry not in image.symbols:
        raise refuse(launch.entry, "the image has no such entry")
    for what, dims, limits in (("block", launch.block, MAX_BLOCK), ("grid", launch.grid, MAX_GRID)):
        if any(not 1 <= n <= limit for n, limit in zip(dims, limits, strict=True)):
            raise refuse(launch.entry, f"a {what} of {dims}; each of x, y, z is 1 to {limits}")
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if threads > MAX_THREADS:
        raise refuse(launch.entry, f"{threads} threads a block, at most {MAX_THREADS}")
    static = image.resources[launch.entry].static_shared_bytes if launch.entry in image.resources else 0
    total = (static or 0) + launch.shared_bytes
    if launch.shared_bytes < 0 or total > max_shared_bytes:
        raise refuse(launch.entry, f"{total} bytes of shared memory a block, at most {max_shared_bytes}")


def pack_launch(
    launch: ConcreteLaunch, image: Image, entries: dict[str, tuple[list[int], str]], addresses: dict[str, int]
) -> dict[str, Any]:
    """The launch as the child takes it. Raises DeviceFault kind 'launch' when arguments and parameters differ."""
    symbol = image.symbols[launch.entry]
    sizes, kinds = entries[symbol]
    if (block := image.blocks.get(launch.entry)) is not None:
        return _packed(launch, symbol, _in_block(launch, block, sizes, addresses))
    if len(launch.args) != len(sizes):
        raise refuse(launch.entry, f"{len(launch.args)} arguments for {len(sizes)} parameters")
    args = []
    for position, (arg, size, kind) in enumerate(zip(launch.args, sizes, kinds, strict=True)):
        where = f"parameter {position + 1}"
        if isinstance(arg, str):
            if kind != "p":
                raise refuse(launch.entry, f"{where} is no pointer but is given the buffer '{arg}'")
            if arg not in addresses:
                raise refuse(launch.entry, f"{where} names the buffer '{arg}', which is not there")
            args.append(addresses[arg].to_bytes(8, "little").hex())
        else:
            args.append(_pack_scalar(arg, size, kind, f"{launch.entry}: {where}"))
    return _packed(launch, symbol, args)


def _packed(launch: ConcreteLaunch, symbol: str, args: list[str]) -> dict[str, Any]:
    return {
        "symbol": symbol, "entry": launch.entry, "args": args, "grid": list(launch.grid),
        "block": list(launch.block), "shared": launch.shared_bytes,
    }  # fmt: skip


def _in_block(
    launch: ConcreteLaunch, block: ParameterBlock, sizes: list[int], addresses: dict[str, int]
) -> list[str]:  # fmt: skip
    """The parameters of a kernel that takes structures."""
    if [size for _, size in block.parameters] != sizes or len(launch.args) != len(block.offsets):
        raise refuse(launch.entry, f"parameters of {sizes} bytes are not those that it was read with")
    raws = [
        addresses[a].to_bytes(8, "little") if isinstance(a, str)
        else np.array(a.value).astype(numpy_dtype(a.dtype)).tobytes()
        for a in launch.args
    ]  # fmt: skip
    packed = block.packed(raws)
    return [packed[start : start + size].hex() for start, size in block.parameters]


def _pack_scalar(value: ScalarValue, size: int, kind: str, where: str) -> str:
    if value == NULL_POINTER and kind == "p":
        return bytes(size).hex()
    dtype = numpy_dtype(value.dtype)
    given = {"f": "f", "i": "i", "u": "u", "b": "u", "V": "s"}.get(dtype.kind, "s")
    integers = {given, kind} <= {"i", "u"}  # signedness does not matter to the bits
    if dtype.itemsize != size or (given != kind and not integers and "s" not in (given, kind)):
        words = {"p": "a pointer", "f": "floating point", "i": "signed", "u": "unsigned", "s": "a structure"}[kind]
        raise DeviceFault(Fault(FaultKind.LAUNCH, f"{where} is {words} of {size} bytes but is given {value.dtype}"))
    return np.array(value.value).astype(dtype).tobytes().hex()
