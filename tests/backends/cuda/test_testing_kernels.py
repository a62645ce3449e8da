"""fsr's own test kernels, executed on the host device, against NumPy: the same bits, the same verdicts."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fsr.backends.cuda import judging
from fsr.backends.cuda.judging import Region
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import Buffer, Comparison
from fsr.contract.model import Argument, Contract, Size, Tolerance
from fsr.hardware.dtypes import bits_of, float_limits, is_float, numpy_dtype
from fsr.records import Candidate, Case, ConcreteLaunch, Image, Launch, Plan, Role
from fsr.testgen import families
from fsr.testgen.compare import compare, tolerance
from fsr.testgen.draws import BLOCK, Draw, Kind
from fsr.testgen.oracle import Expected, Scale

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


@pytest.mark.parametrize("family", [*families.FLOAT, *families.NON_FINITE, *families.APART])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_drawn_with_the_same_bits(device: HostDevice, image: Image, family: str, dtype: str) -> None:
    kind = numpy_dtype(dtype)
    make = families.floating(family)
    plain = make(Draw(Kind.NORMAL, 0x123456789ABCDEF ^ zlib.crc32(family.encode()), 777, row=31), float_limits(kind))
    for draw in (plain, replace(plain, bounds=(-1.0, 2.0)), replace(plain, bounds=(0.5, np.inf), finite=True),
                 replace(plain, bounds=(-np.inf, 0.25)), replace(plain, bounds=(0.0, 1.0))):  # fmt: skip
        assert np.array_equal(bits_of(drawn(device, image, draw, kind)), bits_of(draw.values(kind)))


@pytest.mark.parametrize("family", [*families.INTEGER, families.CROWNED])
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


CONTRACT = Contract(
    "k", (Size("n", 1, 9999, (5,)),), (Argument("y", "float32", Role.OUT, ("n",)),), Plan(()),
    Tolerance(sum_length="n"),
)  # fmt: skip


def outputs_of(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Answers that differ in every way that is told apart: close, far, no number, left alone."""
    truth = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7, n)
    want = (truth * (1 + 1e-7 * rng.standard_normal(n))).astype(np.float32)
    got = (truth * (1 + 10.0 ** rng.integers(-9, -2, n) * rng.standard_normal(n))).astype(np.float32)
    scale = np.abs(want.astype(np.float64)) * rng.choice([1.0, 30.0], n)
    for array, chance in ((want, 0.05), (got, 0.05)):
        array[rng.random(n) < chance] = rng.choice([np.nan, np.inf, -np.inf])
    truth[rng.random(n) < 0.02] = np.inf
    scale[~np.isfinite(want)] = 0.0
    return {"got": got, "want": want, "again": want.copy(), "truth": truth, "scale": scale}


@pytest.mark.parametrize("precise", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_outputs_are_judged_as_on_the_host(device: HostDevice, image: Image, precise: bool, seed: int) -> None:
    n, case = 3000, Case("c", (("n", 3000),), "normal", seed)
    found = outputs_of(np.random.default_rng(seed), n)
    terms = Scale({"y": found["scale"]}, lambda _: {}, iter(()))
    expected = Expected(
        {"y": found["want"]}, {"y": np.zeros(())}, {"y": np.zeros(n, bool)},
        lambda: {"y": found["truth"]} if precise else None, lambda more: terms,
    )  # fmt: skip
    (mismatch,) = compare(CONTRACT, case, {"y": found["got"]}, expected)
    relative, absolute = tolerance(CONTRACT, case, np.dtype(np.float32))
    how = Comparison(relative, absolute, 4.0, 2.0**-7, exact=False, sums=True, pure=False, poisons=(0, 0, 0))
    region = Region(0, n, np.dtype(np.float32))
    rows = run(
        device, image, "fsr_errors", 3, want=found["want"], truth=found["truth"], scale=found["scale"],
        what=np.frombuffer(judging._words(region, how, 0.0, True), np.uint8), rows=np.zeros((3, 3)),
    )["rows"]  # fmt: skip
    root = float(np.sqrt(rows[:, 1].sum() / rows[:, 2].sum()))
    usual = min(float(rows[:, 0].max()), 16.0 * root) if precise else 0.0
    told = run(
        device, image, "fsr_compare", 3, **found,
        what=np.frombuffer(judging._words(region, how, usual, precise), np.uint8),
        rows=np.zeros(3, judging._ROW).view(np.uint8),
    )["rows"]  # fmt: skip
    worst = judging._worst(told.view(judging._ROW))
    assert worst is not None
    assert (worst.kind, worst.count) == (mismatch.kind, mismatch.count)
    if worst.kind == "value":
        assert (worst.index,) == mismatch.index
        assert (worst.got, worst.expected) == (mismatch.got, mismatch.expected)
        assert worst.bound == pytest.approx(mismatch.bound, rel=1e-9)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float32"])
@pytest.mark.parametrize("atol", [None, 1.0, 3.0])
@pytest.mark.parametrize("again_differs", [False, True])
def test_exact_outputs_are_judged_as_on_the_host(
    device: HostDevice, image: Image, dtype: str, atol: float | None, again_differs: bool
) -> None:
    """Of whole numbers, and where the contract asks for equal bits: within its absolute error, and what two runs of
    the original differ by. Ends of the type lie far apart, whatever their bits are."""
    n, case, rng = 500, Case("c", (("n", 500),), "normal", 0), np.random.default_rng(len(dtype))
    kind = numpy_dtype(dtype)
    low, high = (-50, 50) if is_float(kind) else (np.iinfo(kind).min, np.iinfo(kind).max)
    near = rng.choice(np.array([low, low + 5, high - 5, high, 7], kind), n)
    want = near.copy()
    got = np.where(near > 0, near - rng.integers(0, 4, n).astype(kind), near + rng.integers(0, 4, n).astype(kind))
    got = np.where(rng.random(n) < 0.05, rng.permutation(near), got).astype(kind)
    again = (np.where(near > 0, near - 1, near + 1) if again_differs else near).astype(kind)
    spread = np.full(n, 1.0 if again_differs else 0.0)
    contract = replace(
        CONTRACT, args=(Argument("y", dtype, Role.OUT, ("n",)),), tolerance=Tolerance(atol=atol, exact=True)
    )
    expected = Expected(
        {"y": want}, {"y": spread}, {"y": np.zeros(n, bool)}, lambda: None,
        lambda more: Scale({}, lambda _: {}, iter(())),
    )  # fmt: skip
    wanted = compare(contract, case, {"y": got}, expected)
    how = Comparison(
        0.0, atol or 0.0, 4.0, 2.0**-7, exact=True, sums=False, pure=False, poisons=(0, 0, 0)
    )  # fmt: skip
    told = run(
        device, image, "fsr_compare", 3, got=got, want=want, again=again, truth=np.zeros(n), scale=np.zeros(n),
        what=np.frombuffer(judging._words(Region(0, n, kind), how, 0.0, False, exact=True), np.uint8),
        rows=np.zeros(3, judging._ROW).view(np.uint8),
    )["rows"]  # fmt: skip
    worst = judging._worst(told.view(judging._ROW))
    if not wanted:
        assert worst is None
        return
    assert worst is not None
    assert (worst.kind, worst.count, worst.bound) == (wanted[0].kind, wanted[0].count, wanted[0].bound)
    if kind.itemsize < 8:  # beyond 2^53 the host tells numbers by their nearest double
        assert (worst.error, worst.got) == (wanted[0].error, wanted[0].got)


def test_the_ptx_was_made_from_this_source() -> None:
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    ptx = SOURCE.with_suffix(".ptx").read_text()
    assert ptx.startswith(f"// from testing.cu, sha256 {digest}\n"), "rebuild testing.ptx as testing.cu says"
    assert all(f".entry {entry}(" in ptx for entry in ENTRIES)
    assert is_float(np.dtype("float32"))
