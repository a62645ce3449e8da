"""Compiles and runs small kernels on one host device a session."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import AccessProfile, Buffer
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue

ONE = ("1", "1", "1")


@cache
def build_image(
    source: str, entries: tuple[str, ...], instrumented: bool = False, compiler: str | None = None
) -> Image:
    if compiler and not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    plan = Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in entries))
    image = HostToolchain(compiler).compile(Candidate(source, plan), instrumented=instrumented)
    assert isinstance(image, Image), image
    return image


def place(name: str, value: Any) -> tuple[Buffer | None, str | ScalarValue]:
    """Arrays whose name starts with 'out' are outputs, 'io' in-outs, 'tmp' scratch, 'zero' cleared scratch."""
    if isinstance(value, ScalarValue):
        return None, value
    if isinstance(value, int):
        return None, ScalarValue("int32", value)
    if isinstance(value, float):
        return None, ScalarValue("float32", value)
    roles = {"out": Role.OUT, "io": Role.INOUT, "tmp": None, "zer": None}
    role = roles.get(name[:3], roles.get(name[:2], Role.IN))
    return Buffer(name, value, role, zeroed=name.startswith("zero")), name


def launch_of(
    entry: str, grid: Any, block: Any, shared: int, args: dict[str, Any]
) -> tuple[ConcreteLaunch, list[Buffer]]:
    grid = grid if isinstance(grid, tuple) else (grid, 1, 1)
    block = block if isinstance(block, tuple) else (block, 1, 1)
    placed = [place(name, value) for name, value in args.items()]
    return (
        ConcreteLaunch(entry, grid, block, shared, tuple(arg for _, arg in placed)),
        [buffer for buffer, _ in placed if buffer is not None],
    )


@pytest.fixture(scope="session")
def host() -> Iterator[HostDevice]:
    device = open_host_device()
    yield device
    device.close()


@pytest.fixture(scope="session")
def run(host: HostDevice) -> Callable[..., dict[str, np.ndarray]]:
    """run(source, entry, grid, block, shared=0, **args): the buffers afterwards."""

    def run_(source: str, entry: str, grid: Any, block: Any, shared: int = 0, compiler: str | None = None, **args: Any):
        launch, buffers = launch_of(entry, grid, block, shared, args)
        with host.prepare(build_image(source, (entry,), compiler=compiler), [launch], buffers) as prepared:
            prepared.run(5.0)
            assert prepared.violations() == []
            return prepared.read()

    return run_


@pytest.fixture(scope="session")
def record(host: HostDevice) -> Callable[..., AccessProfile]:
    """record(source, entry, grid, block, shared=0, budget=..., **args): the profile."""

    def record_(
        source: str, entry: str, grid: Any, block: Any, shared: int = 0, budget: int = 10**7,
        compiler: str | None = None, **args: Any,
    ) -> AccessProfile:  # fmt: skip
        launch, buffers = launch_of(entry, grid, block, shared, args)
        image = build_image(source, (entry,), True, compiler)
        return host.record(image, [launch], buffers, access_budget=budget, timeout_s=20.0)

    return record_
