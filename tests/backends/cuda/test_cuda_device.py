"""The CUDA device over a fake driver: what it does with memory, launches, faults and the clock."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from device_conformance import POISON, DeviceConformance, given, int32, launch
from fake_driver import KERNELS, FakeDriver, fake_image

from fsr.backends.cuda import checks
from fsr.backends.cuda.device import MAX_MODULES, CudaDevice
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.errors import HarnessError
from fsr.records import Image, Role, ScalarValue
from fsr.testgen.draws import Draw, Kind

FAR_INDEX = ScalarValue("int64", 1 << 44)


def open_device(**options: int) -> CudaDevice:
    return CudaDevice(driver=FakeDriver(**options))


class FakeBench:
    exact_limits = True

    def __init__(self) -> None:
        self.device = open_device()

    def image(self) -> Image:
        return fake_image()

    def lost(self, entry: str, timeout_s: float) -> tuple[str, bool]:
        device = open_device()
        args = ("y",) if entry == "spin" else ("y", ScalarValue("float32", 1.0), FAR_INDEX)
        buffer = given("y", np.zeros(4, np.float32), Role.OUT)
        with (
            device.prepare(fake_image(), [launch(entry, *args)], [buffer]) as prepared,
            pytest.raises(DeviceFault) as caught,
        ):
            prepared.run(timeout_s)
        return caught.value.fault.kind, caught.value.fatal


class TestFakeCudaDevice(DeviceConformance):
    @pytest.fixture
    def bench(self) -> FakeBench:
        return FakeBench()


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    device = open_device()
    yield device
    device.close()


def driver_of(device: CudaDevice) -> FakeDriver:
    assert isinstance(device.driver, FakeDriver)
    return device.driver


def copy_buffers(n: int = 1000, *, constant: bool = False) -> list:
    x = np.arange(n, dtype=np.float32)
    y = np.full(n, POISON)
    x.flags.writeable = y.flags.writeable = not constant
    return [given("x", x, Role.IN), given("y", y, Role.OUT)]


COPY = [launch("copy", "x", "y", int32(1000), grid=8, block=128)]


def test_a_thousand_candidates_leave_no_memory_behind_and_allocate_nothing_new(device: CudaDevice) -> None:
    driver = driver_of(device)
    for _ in range(3):
        with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
            prepared.run()
    settled, allocations = driver.allocated_bytes, driver.log.count("alloc")
    for _ in range(1000):
        with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
            prepared.run()
    assert driver.allocated_bytes == settled
    assert driver.log.count("alloc") == allocations
    assert device.pool.used_bytes == 0


def test_arrays_marked_read_only_are_uploaded_once(device: CudaDevice) -> None:
    driver, buffers = driver_of(device), copy_buffers(constant=True)
    uploads = []
    for _ in range(3):
        before = driver.log.count("upload")
        with device.prepare(fake_image(), COPY, buffers) as prepared:
            prepared.run()
            assert np.array_equal(prepared.read()["y"], buffers[0].array)
        uploads.append(driver.log.count("upload") - before)
    assert uploads == [3, 1, 1], "two arrays and the check's table, then the table alone"


def test_another_array_in_the_place_of_a_freed_one_is_not_mistaken_for_it(device: CudaDevice) -> None:
    for value in range(50):
        x = np.full(1000, value, np.float32)
        x.flags.writeable = False
        buffers = [given("x", x, Role.IN), given("y", np.zeros(1000, np.float32), Role.OUT)]
        with device.prepare(fake_image(), COPY, buffers) as prepared:
            prepared.run()
            assert prepared.read()["y"][0] == value
        del x, buffers


def test_kept_inputs_stay_within_their_limit(device: CudaDevice) -> None:
    for _ in range(20):
        array = np.zeros(10 << 20, np.uint8)
        array.flags.writeable = False
        with device.prepare(fake_image(), [launch("nothing", "y")], [given("y", array, Role.IN)]):
            pass
    assert driver_of(device).allocated_bytes < (1 << 30) * 0.6


def test_answers_of_one_candidate_are_not_found_by_the_next(device: CudaDevice) -> None:
    with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
        prepared.run()
    free = [address for blocks in device.pool._free.values() for address in blocks]
    answer = np.arange(1000, dtype=np.float32).tobytes()
    blocks = driver_of(device).blocks
    assert free
    assert all(answer not in blocks[address].tobytes() for address in free)


def test_buffers_that_do_not_fit_are_a_fault_and_free_everything() -> None:
    device = open_device(memory_bytes=64 << 20)
    big = [given(name, np.zeros(12 << 20, np.uint8), Role.OUT) for name in "yabc"]
    with pytest.raises(DeviceFault) as caught:
        device.prepare(fake_image(), [launch("nothing", "y")], big)
    assert (caught.value.fault.kind, caught.value.fatal) == ("memory", False)
    assert device.pool.used_bytes == 0
    with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
        prepared.run()
        assert prepared.violations() == []


def test_kept_inputs_make_way_when_memory_runs_out() -> None:
    device = open_device(memory_bytes=64 << 20)
    array = np.zeros(5 << 20, np.uint8)
    array.flags.writeable = False
    with device.prepare(fake_image(), [launch("nothing", "y")], [given("y", array, Role.IN)]):
        pass
    with device.prepare(
        fake_image(), [launch("nothing", "y")], [given("y", np.zeros(27 << 20, np.uint8), Role.OUT)]
    ) as prepared:
        prepared.run()
        assert prepared.violations() == []


def test_modules_are_loaded_once_and_the_oldest_go(device: CudaDevice) -> None:
    images = [fake_image(data=b"image %d" % i) for i in range(MAX_MODULES + 5)]
    buffer = given("y", np.zeros(1, np.float32), Role.OUT)
    for image in [*images, images[-1], images[-2], images[0]]:
        with device.prepare(image, [launch("nothing", "y")], [buffer]):
            pass
    loaded = driver_of(device).loaded
    assert loaded.count(b"image 0") == 2
    assert all(loaded.count(image.data) == 1 for image in images[10:])


def test_an_image_that_does_not_load_is_a_launch_fault(device: CudaDevice) -> None:
    buffer = given("y", np.zeros(1, np.float32), Role.OUT)
    for image in (fake_image(data=b"broken"), Image("cubin", "sm_90", b"ok", {"nothing": "no_such_symbol"}, {})):
        with pytest.raises(DeviceFault, match=r"no binary|not found") as caught:
            device.prepare(image, [launch("nothing", "y")], [buffer])
        assert caught.value.fault.kind == "launch"


def test_an_image_for_the_host_is_a_fault_of_the_harness(device: CudaDevice) -> None:
    with pytest.raises(HarnessError, match="kind 'host'"):
        device.prepare(Image("host", "x86_64", b"", {}, {}), [], [])


def test_large_shared_memory_is_opted_in_to_and_counted_with_the_static_part(device: CudaDevice) -> None:
    buffer = given("y", np.zeros(1, np.float32), Role.OUT)
    with device.prepare(fake_image(), [launch("shared40k", "y", shared=100_000)], [buffer]) as prepared:
        prepared.run()
    assert driver_of(device).opted_in == {"shared40k": 100_000}
    with pytest.raises(DeviceFault, match="shared memory") as caught:
        device.prepare(fake_image(), [launch("shared40k", "y", shared=200_000)], [buffer])
    assert caught.value.fault.kind == "launch"


def test_an_argument_that_does_not_fit_its_type_is_a_launch_fault(device: CudaDevice) -> None:
    with pytest.raises(DeviceFault, match="does not fit in int32") as caught:
        device.prepare(fake_image(), [launch("copy", "x", "y", int32(2**31))], copy_buffers())
    assert caught.value.fault.kind == "launch"
    assert device.pool.used_bytes == 0


def test_the_kernels_own_thread_limit_counts(device: CudaDevice) -> None:
    buffer = given("y", np.zeros(1, np.float32), Role.OUT)
    with pytest.raises(DeviceFault, match="at most 256"):
        device.prepare(fake_image(), [launch("narrow", "y", block=512)], [buffer])


def test_time_is_that_of_the_plan_alone_with_its_clearing(device: CudaDevice) -> None:
    zeroed = given("t", np.zeros(2_000_000, np.uint8), None, zeroed=True)
    plan = [launch("nothing", "t"), launch("nothing", "t")]
    with device.prepare(fake_image(), plan, [zeroed]) as prepared:
        assert prepared.time_ns() == pytest.approx(2 * KERNELS["nothing"].cost_ns + 2_000_000 / 2000)


@pytest.mark.parametrize("graphs", [True, False])
def test_a_long_plan_is_timed_as_a_graph_of_the_memory_it_has(device: CudaDevice, graphs: bool) -> None:
    driver = driver_of(device)
    driver.graphs = graphs
    captured: list[object] = []
    make = driver.graph
    driver.graph = lambda queue: captured.append(queue) or make(queue)  # type: ignore[method-assign]
    plan = [launch("scale", "y", ScalarValue("float32", 1.0), int32(9)) for _ in range(100)]
    buffer = given("y", np.ones(10, np.float32), Role.INOUT)
    with (
        device.prepare(fake_image(), plan, [buffer]) as one,
        device.prepare(fake_image(), plan[:2], [buffer]) as two,
    ):
        for _ in range(3):
            assert one.time_ns() == pytest.approx(100 * KERNELS["scale"].cost_ns)
        assert len(captured) == (1 if graphs else 3), "captured once for one memory"
        assert two.time_ns() == pytest.approx(2 * KERNELS["scale"].cost_ns)
        assert len(captured) == (1 if graphs else 3), "a short plan is none"
        one.exchange(two)
        one.time_ns()
        assert len(captured) == (2 if graphs else 4), "captured anew for the other memory"
        assert one.violations() == []


def test_inout_is_restored_before_each_timed_run(device: CudaDevice) -> None:
    scale = [launch("scale", "y", ScalarValue("float32", 2.0), int32(10))]
    with device.prepare(fake_image(), scale, [given("y", np.ones(10, np.float32), Role.INOUT)]) as prepared:
        for _ in range(5):
            prepared.time_ns()
        assert prepared.read()["y"].tolist() == [2.0] * 10


def test_outputs_are_poisoned_anew_before_each_timed_run(device: CudaDevice) -> None:
    poison = np.full(10, np.nan, np.float32)
    with device.prepare(fake_image(), [launch("nothing", "y")], [given("y", poison, Role.OUT)]) as prepared:
        block = prepared._sets[0].blocks["y"] + prepared._layouts["y"].offset
        driver_of(device).upload(block, np.zeros(10, np.float32))
        prepared.time_ns()
        assert np.isnan(prepared.read()["y"]).all()


def test_the_l2_is_flushed_right_before_the_clock_starts(device: CudaDevice) -> None:
    with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
        prepared.run()
        before = driver_of(device).now_ns
        prepared.time_ns()
        spent = driver_of(device).now_ns - before
    assert spent >= (128 << 20) / 2000, "twice an L2 of 50 MiB is less than 128 MiB"


@pytest.mark.parametrize("graphs", [True, False])
def test_batched_time_is_the_mean_and_rotates_over_copies(device: CudaDevice, graphs: bool) -> None:
    driver = driver_of(device)
    driver.graphs = graphs
    with device.prepare(fake_image(), COPY, copy_buffers()) as prepared:
        assert prepared.time_batch_ns(32) == pytest.approx(KERNELS["copy"].cost_ns)
        assert len({memory.blocks["x"] for memory in prepared._sets}) >= 3
        assert driver.log.count("copy") == 33
        assert prepared.violations() == []
    kept = device.pool.used_bytes - (256 << 20)
    assert 0 <= kept < 1 << 20, "only the block that flushes, with the table of its reads, stays"


def test_two_plans_exchange_their_memory_and_give_back_all_of_it(device: CudaDevice) -> None:
    with (
        device.prepare(fake_image(), COPY, copy_buffers()) as one,
        device.prepare(fake_image(), COPY, copy_buffers()) as two,
    ):
        places = [prepared.region("y").address for prepared in (one, two)]
        one.exchange(two)
        assert [prepared.region("y").address for prepared in (two, one)] == places
        one.run()
        assert np.array_equal(one.read()["y"], copy_buffers()[0].array)
        assert not np.array_equal(two.read()["y"], copy_buffers()[0].array), "it has not run yet"
        assert one.violations() == two.violations() == []
    assert device.pool.used_bytes == 0


def test_copy_bandwidth_counts_reads_and_writes_and_is_measured_once(device: CudaDevice) -> None:
    assert device.copy_bandwidth() == pytest.approx(2e12)
    spent = driver_of(device).now_ns
    device.copy_bandwidth()
    assert driver_of(device).now_ns == spent
    assert device.pool.used_bytes == 0


def test_after_a_fatal_fault_the_gpu_is_left_alone() -> None:
    device = open_device()
    buffer = given("y", np.zeros(1, np.float32), Role.OUT)
    with device.prepare(fake_image(), [launch("spin", "y")], [buffer]) as prepared, pytest.raises(DeviceFault):
        prepared.run(0.05)
    with pytest.raises(HarnessError, match="fatal fault"):
        device.prepare(fake_image(), [launch("nothing", "y")], [buffer])
    device.close()
    assert driver_of(device).abandoned
    assert not driver_of(device).closed


def test_a_crash_in_timing_is_a_crash() -> None:
    device = open_device()
    store = launch("store_at", "y", ScalarValue("float32", 1.0), ScalarValue("int64", 1 << 44))
    with device.prepare(fake_image(), [store], [given("y", np.zeros(4, np.float32), Role.OUT)]) as prepared:
        with pytest.raises(DeviceFault, match="illegal memory access") as caught:
            prepared.time_ns()
        assert (caught.value.fault.kind, caught.value.fatal) == ("crash", True)


def test_identity_names_what_a_cache_key_needs(device: CudaDevice) -> None:
    info = device.info
    assert (info.vendor, info.name, info.arch, info.sm_count) == ("nvidia", "Fake GPU", "sm_90", 132)
    assert (info.l2_bytes, info.max_shared_bytes, info.memory_bytes) == (50 << 20, 232448, 1 << 30)
    assert (info.sm_clock_mhz, info.memory_clock_mhz) == (1980, 3201)
    assert device.sm_clock_mhz() is None


def test_the_check_kernel_is_built_from_its_source() -> None:
    folder = Path(checks.__file__).parent
    digest = hashlib.sha256((folder / "check.cu").read_bytes()).hexdigest()
    ptx = checks.check_module().decode()
    assert ptx.startswith(f"// from check.cu, sha256 {digest}\n"), "rebuild check.ptx as check.cu says"
    assert f".visible .entry {checks.CHECK_ENTRY}(" in ptx
    assert ptx.endswith("\0")


def test_a_drawn_buffer_is_drawn_there_reset_and_checked(device: CudaDevice) -> None:
    formula = Draw(Kind.GRID, 7, 500, a=1.0, c=99.0)
    wanted = formula.values(np.dtype(np.float32))
    placeholder = np.broadcast_to(np.zeros((), np.float32), (500,))
    buffers = [Buffer("x", placeholder, Role.IN, formula=formula), Buffer("y", np.zeros(500, np.float32), Role.OUT)]
    with device.prepare(fake_image(), [launch("copy", "x", "y", int32(500))], buffers) as prepared:
        prepared.run()
        assert np.array_equal(prepared.read()["y"], wanted)
        assert prepared.violations() == []
    changing = [launch("scale", "x", ScalarValue("float32", 2.0), int32(500))]
    with device.prepare(fake_image(), changing, buffers) as prepared:
        prepared.run()
        (fault,) = prepared.violations()
        changed = int(np.flatnonzero(wanted)[0])
        assert (fault.kind, fault.detail) == ("input-changed", f"x: element {changed} is an input and was changed")
        prepared.reset()
        assert prepared.violations() == []
