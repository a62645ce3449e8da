"""fsr's own test kernels, executed on the host device, against NumPy: the same bits, the same verdicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import Buffer
from fsr.hardware.dtypes import bits_of, float_limits, is_float, numpy_dtype
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role
from fsr.testgen import families
from fsr.testgen.draws import BLOCK, Draw, Kind

SOURCE = Path(__file__).parents[3] / "fsr" / "backends" / "cuda" / "testing.cu"
ENTRIES = ("fsr_draw", "fsr_drawn", "fsr_shake", "fsr_scale", "fsr_errors", "fsr_compare")


@pytest.fixture(scope="module")
def device() -> Iterator[HostDevice]:
    device = open_host_device()
    yield device
    device.close()


@pytest.fixture(scope="module")
def image() -> Image:
    launches = tuple(Launch(name, ("1", "1", "1"), ("32", "1", "1"), "0", ()) for name in ENTRIES)
    built = HostToolchain().compile(Candidate(SOURCE.read_text(), Plan(launches, (), ("--fmad=false",))))
    assert isinstance(built, Image), built
    return built


def run(device: HostDevice, image: Image, entry: str, blocks: int, **arrays: Any) -> dict[str, Any]:
    launch = ConcreteLaunch(entry, (blocks, 1, 1), (128, 1, 1), 0, tuple(arrays))
    buffers = [Buffer(name, array, Role.INOUT) for name, array in arrays.items()]
    with device.prepare(image, [launch], buffers) as prepared:
        prepared.run()
        assert not prepared.violations()
        return prepared.read()


def drawn(device: HostDevice, image: Image, draw: Draw, dtype: np.dtype[Any]) -> Any:
    words = np.frombuffer(draw.parameters(dtype), np.uint8)
    return run(device, image, "fsr_draw", 4, out=np.zeros(draw.count, dtype), draw=words)["out"]


@pytest.mark.parametrize("family", [*families.FLOAT, *families.NON_FINITE])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_drawn_with_the_same_bits(device: HostDevice, image: Image, family: str, dtype: str) -> None:
    kind = numpy_dtype(dtype)
    make = (families.FLOAT | families.NON_FINITE)[family]
    plain = make(Draw(Kind.NORMAL, 0x123456789ABCDEF ^ hash(family) % 2**60, 777, row=31), float_limits(kind))
    for draw in (plain, replace(plain, bounds=(-1.0, 2.0)), replace(plain, bounds=(0.5, np.inf), finite=True),
                 replace(plain, bounds=(-np.inf, 0.25))):  # fmt: skip
        assert np.array_equal(bits_of(drawn(device, image, draw, kind)), bits_of(draw.values(kind)))


@pytest.mark.parametrize("family", families.INTEGER)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_drawn_with_the_same_bits(device: HostDevice, image: Image, family: str, dtype: str) -> None:
    kind = np.dtype(dtype)
    limits = np.iinfo(kind)
    for low, high in ((int(limits.min), int(limits.max)), (3, 100)):
        draw = families.integer_draw(family, Draw(Kind.NORMAL, 99, 555), low, high)
        assert np.array_equal(drawn(device, image, draw, kind), draw.values(kind))


def test_long_arrays_and_poison_too(device: HostDevice, image: Image) -> None:
    from fsr.testgen.values import poison_draw

    for draw in (families.FLOAT["normal"](Draw(Kind.NORMAL, 5, BLOCK + 4321), float_limits(np.dtype("float32"))),
                 poison_draw(np.dtype("float32"), 1000, 3)):  # fmt: skip
        wanted = draw.values(np.dtype("float32"))
        assert np.array_equal(bits_of(drawn(device, image, draw, np.dtype("float32"))), bits_of(wanted))
    first = np.full(1, 2**64 - 1, np.uint64)
    words = np.frombuffer(draw.parameters(np.dtype("float32")), np.uint8)
    assert run(device, image, "fsr_drawn", 2, at=wanted, draw=words, first=first)["first"][0] == 2**64 - 1
    wanted[77] = 1.0
    assert run(device, image, "fsr_drawn", 2, at=wanted, draw=words, first=first)["first"][0] == 77


def test_the_ptx_was_made_from_this_source() -> None:
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    ptx = SOURCE.with_suffix(".ptx").read_text()
    assert ptx.startswith(f"// from testing.cu, sha256 {digest}\n"), "rebuild testing.ptx as testing.cu says"
    assert all(f".entry {entry}(" in ptx for entry in ENTRIES)
    assert is_float(np.dtype("float32"))
