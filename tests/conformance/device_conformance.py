"""What every device must do, whatever is behind it: one suite, run on the host device, on the CUDA device over a
fake driver, and (marked gpu) on a real GPU.

A subclass gives the fixture ``bench``: a :class:`Bench` that can compile :data:`SOURCE` and open its device.
Faults after which a device is lost are tried through :meth:`Bench.lost`, in a process of their own where the
device is real.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pytest

from fsr.backends.protocol import Buffer, Device, DeviceFault, Prepared
from fsr.records import ConcreteLaunch, Image, Role, ScalarValue

SOURCE = """
extern "C" __global__ void copy(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}
extern "C" __global__ void scale(float* y, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] * by;
}
extern "C" __global__ void add_to(const float* x, double* sum, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) for (int i = 0; i < n; i++) *sum += x[i];
}
extern "C" __global__ void store_at(float* y, float value, long long index) {
  if (blockIdx.x == 0 && threadIdx.x == 0) y[index] = value;
}
extern "C" __global__ void address(const float* x, unsigned long long* y) {
  if (blockIdx.x == 0 && threadIdx.x == 0) y[0] = (unsigned long long)x;
}
extern "C" __global__ void mixed(unsigned char a, double b, short c, long long d, bool e, double* y) {
  if (blockIdx.x == 0 && threadIdx.x == 0) { y[0] = a; y[1] = b; y[2] = c; y[3] = (double)d; y[4] = e; }
}
extern "C" __global__ void nothing(float* y) {}
extern "C" __global__ void spin(volatile float* y) { while (y[0] != -1.0f) { } }
"""
ENTRIES = ("copy", "scale", "add_to", "store_at", "address", "mixed", "nothing", "spin")
POISON = np.float32(np.frombuffer(b"\x37\x13\xc0\x7f", np.float32)[0])  # a NaN with a payload


class Bench(Protocol):
    """A device under test."""

    device: Device
    exact_limits: bool  # whether launch limits are those of a GPU

    def image(self) -> Image:
        """SOURCE compiled for the device."""

    def lost(self, entry: str, timeout_s: float) -> tuple[str, bool]:
        """Run ``spin`` or an illegal ``store_at`` where the device may be lost: kind of the fault, fatal."""


def int32(value: int) -> ScalarValue:
    return ScalarValue("int32", value)


def launch(entry: str, *args: Any, grid: int = 1, block: int = 64, shared: int = 0) -> ConcreteLaunch:
    return ConcreteLaunch(entry, (grid, 1, 1), (block, 1, 1), shared, args)


def given(name: str, array: Any, role: Role | None, alignment: int = 256, zeroed: bool = False) -> Buffer:
    return Buffer(name, np.ascontiguousarray(array), role, alignment, zeroed)


def stopping_fault(prepared: Prepared) -> DeviceFault | None:
    """The fault that ends a run; None when it ends well."""
    try:
        prepared.run()
    except DeviceFault as fault:
        return fault
    return None


class DeviceConformance:
    """Inherit as ``TestX`` beside a ``bench`` fixture."""

    def prepare(self, bench: Bench, launches: Sequence[ConcreteLaunch], *buffers: Buffer) -> Prepared:
        return bench.device.prepare(bench.image(), launches, buffers)

    @pytest.mark.parametrize("n", [1, 31, 1000, 70_001])
    def test_a_copy_gives_its_input_and_leaves_no_mark(self, bench: Bench, n: int) -> None:
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        y = np.full(n, POISON)
        with self.prepare(
            bench,
            [launch("copy", "x", "y", int32(n), grid=4, block=128)],
            given("x", x, Role.IN),
            given("y", y, Role.OUT),
        ) as prepared:
            assert np.array_equal(prepared.read()["y"].view(np.uint32), y.view(np.uint32)), (
                "poison must arrive as it is"
            )
            prepared.run()
            got = prepared.read()
            assert np.array_equal(got["y"], x)
            assert np.array_equal(got["x"], x)
            assert prepared.violations() == []

    def test_reset_restores_every_buffer(self, bench: Bench) -> None:
        y = np.arange(100, dtype=np.float32)
        scale = launch("scale", "y", ScalarValue("float32", 3.0), int32(100), grid=2)
        with self.prepare(bench, [scale], given("y", y, Role.INOUT)) as prepared:
            prepared.run()
            prepared.run()
            assert np.array_equal(prepared.read()["y"], y * 9)
            prepared.reset()
            assert np.array_equal(prepared.read()["y"], y)
            prepared.run()
            assert np.array_equal(prepared.read()["y"], y * 3)
            assert prepared.violations() == []

    def test_launches_run_in_order_and_share_scratch(self, bench: Bench) -> None:
        x = np.linspace(0, 1, 50, dtype=np.float32)
        plan = [
            launch("copy", "x", "t", int32(50)),
            launch("scale", "t", ScalarValue("float32", -2.0), int32(50)),
            launch("copy", "t", "y", int32(50)),
        ]
        with self.prepare(
            bench,
            plan,
            given("x", x, Role.IN),
            given("t", np.full(50, POISON), None),
            given("y", np.full(50, POISON), Role.OUT),
        ) as prepared:
            prepared.run()
            got = prepared.read()
            assert np.array_equal(got["y"], x * np.float32(-2))
            assert set(got) == {"x", "y"}, "scratch is not read back"

    def test_hundreds_of_launches_run_in_order_each_with_its_own_scalars(self, bench: Bench) -> None:
        fill = [launch("store_at", "y", ScalarValue("float32", i), ScalarValue("int64", i)) for i in range(300)]
        plan = [*fill, launch("scale", "y", ScalarValue("float32", 2.0), int32(300), grid=5), *fill[::7]]
        with self.prepare(bench, plan, given("y", np.full(300, POISON), Role.OUT)) as prepared:
            prepared.run()
            want = np.arange(300, dtype=np.float32) * np.where(np.arange(300) % 7, 2, 1)
            assert np.array_equal(prepared.read()["y"], want)
            assert prepared.violations() == []

    def test_zeroed_scratch_is_cleared_before_every_run_and_other_scratch_is_not(self, bench: Bench) -> None:
        x = np.ones(10, np.float32)
        for zeroed, after_two in ((True, 10.0), (False, 25.0)):
            plan = [launch("add_to", "x", "sum", int32(10)), launch("copy", "sum", "y", int32(2))]
            with self.prepare(
                bench,
                plan,
                given("x", x, Role.IN),
                given("sum", np.array([5.0]), None, zeroed=zeroed),
                given("y", np.full(2, POISON), Role.OUT),
            ) as prepared:
                prepared.run()
                prepared.run()
                assert prepared.read()["y"].view(np.float64)[0] == after_two

    @pytest.mark.parametrize("index", [-1, -3, 64, 70])
    def test_a_write_outside_is_found_on_either_side(self, bench: Bench, index: int) -> None:
        store = launch("store_at", "y", ScalarValue("float32", 1.0), ScalarValue("int64", index))
        with self.prepare(bench, [store], given("y", np.zeros(64, np.float32), Role.OUT)) as prepared:
            if (stopped := stopping_fault(prepared)) is not None:  # a guard page may stop it at once
                assert stopped.fault.kind in ("crash", "out-of-bounds", "guard")
                return
            kinds = [(fault.kind, "y" in fault.detail) for fault in prepared.violations()]
            assert kinds == [("guard", True)]
            prepared.reset()
            assert prepared.violations() == []

    def test_a_changed_input_is_found(self, bench: Bench) -> None:
        x = np.arange(64, dtype=np.float32)
        store = launch("store_at", "x", ScalarValue("float32", 99.0), ScalarValue("int64", 17))
        with self.prepare(bench, [store], given("x", x, Role.IN)) as prepared:
            prepared.run()
            faults = prepared.violations()
            assert [fault.kind for fault in faults] == ["input-changed"]
            assert "17" in faults[0].detail
            assert prepared.read()["x"][17] == 99.0
            assert x[17] == 17.0, "the caller's array stays"

    @pytest.mark.parametrize("alignment", [4, 8, 16, 64, 256])
    def test_addresses_are_aligned_as_asked_and_no_better(self, bench: Bench, alignment: int) -> None:
        with self.prepare(
            bench,
            [launch("address", "x", "y")],
            given("x", np.zeros(100, np.float32), Role.IN, alignment),
            given("y", np.zeros(1, np.uint64), Role.OUT),
        ) as prepared:
            prepared.run()
            address = int(prepared.read()["y"][0])
            assert address % alignment == 0
            assert alignment == 256 or address % (2 * alignment) != 0
            assert prepared.violations() == []

    def test_scalars_of_every_width_arrive(self, bench: Bench) -> None:
        scalars = [
            ScalarValue("uint8", 200),
            ScalarValue("float64", 0.1),
            ScalarValue("int16", -7),
            ScalarValue("int64", -(2**40)),
            ScalarValue("bool", 1),
        ]
        with self.prepare(bench, [launch("mixed", *scalars, "y")], given("y", np.zeros(5), Role.OUT)) as prepared:
            prepared.run()
            assert prepared.read()["y"].tolist() == [200.0, 0.1, -7.0, -float(2**40), 1.0]

    def test_empty_buffers_are_allowed(self, bench: Bench) -> None:
        with self.prepare(
            bench,
            [launch("copy", "x", "y", int32(0))],
            given("x", np.zeros(0, np.float32), Role.IN),
            given("y", np.zeros(0, np.float32), Role.OUT),
        ) as prepared:
            prepared.run()
            assert prepared.read()["y"].shape == (0,)
            assert prepared.violations() == []

    @pytest.mark.parametrize(
        "it",
        [
            launch("nothing", "y", block=1025),
            launch("nothing", "y", grid=0),
            launch("nothing", "y", shared=1 << 30),
            ConcreteLaunch("nothing", (1, 70_000, 1), (1, 1, 1), 0, ("y",)),
        ],
    )
    def test_an_impossible_launch_is_refused_before_it_runs(self, bench: Bench, it: ConcreteLaunch) -> None:
        if not bench.exact_limits:
            pytest.skip("this device does not have a GPU's launch limits")
        with pytest.raises(DeviceFault) as caught:
            self.prepare(bench, [it], given("y", np.zeros(1, np.float32), Role.OUT))
        assert caught.value.fault.kind == "launch"
        assert not caught.value.fatal
        self.test_reset_restores_every_buffer(bench)

    def test_a_kernel_that_never_ends_is_given_up(self, bench: Bench) -> None:
        assert bench.lost("spin", 0.3)[0] == "hang"

    def test_an_illegal_access_is_a_crash(self, bench: Bench) -> None:
        assert bench.lost("store_at", 5.0)[0] in ("crash", "out-of-bounds")

    def test_identity_is_filled_in(self, bench: Bench) -> None:
        info = bench.device.info
        assert info.vendor
        assert info.name
        assert info.arch
        assert info == bench.device.info
