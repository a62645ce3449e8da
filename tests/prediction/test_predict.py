"""Predicted times: magnitudes that are known, and the order of variants whose order is known."""

import dataclasses
import math

import pytest

from fsr.backends.protocol import Arithmetic
from fsr.features.schema import BOTTLENECKS
from fsr.hardware.gpus import A100, H100, H200
from fsr.prediction.predict import predict
from fsr.records import Resources

N = 1 << 24


def time_ns(make, *launches, footprint=8.0 * N, resources=None, target=H200) -> float:
    return predict(make.profile(*launches), resources or {}, target, footprint).time_ns


def saxpy(make, **changes):
    x, y = make.site(N, 4), make.site(N, 4, buffer="y")
    return make.launch([x, y, make.site(N, 4, buffer="y", kind="write", block_sectors=0.0)], **changes)


def vectors(make, **changes):
    """saxpy with an access of 16 bytes a thread, 128 threads a block: 46 us on an H200."""
    wide = {"requests": N / 128, "lanes": N / 4, "bytes": 16, "lines": N / 32}
    x, y = make.site(N, 4, **wide), make.site(N, 4, buffer="y", **wide)
    return make.launch([x, y, dataclasses.replace(y, kind="write", block_sectors=0.0)], blocks=32768, threads=128)


def test_saxpy_runs_near_the_memory_bandwidth(make) -> None:
    found = predict(make.profile(vectors(make)), {"k": Resources(registers=18)}, H200, 8.0 * N)
    assert 40e3 < found.time_ns < 55e3
    assert found.binds == "bandwidth"


def test_an_element_a_thread_has_too_little_under_way(make) -> None:
    """Measured on an H200, 16.8 million elements: 58 us in blocks of 256, 82 us in blocks of 128, which start one by
    one; 46 us with vectors."""
    found = predict(make.profile(saxpy(make)), {"k": Resources(registers=10)}, H200, 8.0 * N)
    small = predict(make.profile(saxpy(make, blocks=131072, threads=128)), {}, H200, 8.0 * N)
    assert found.time_ns > 1.1 * time_ns(make, vectors(make))
    assert found.binds == "latency"
    assert small.time_ns > 1.2 * found.time_ns
    assert small.binds == "launch"


def test_elements_that_a_thread_copies_one_by_one_are_one_vector(make) -> None:
    """A recording has an access for each member of a struct; the GPU reads all four at once."""
    wide = vectors(make)
    members = [
        dataclasses.replace(s, bytes=4, requests=4 * s.requests, lanes=4 * s.lanes, sectors=4 * s.sectors,
                            lines=4 * s.lines)
        for s in wide.sites
    ]  # fmt: skip
    assert time_ns(make, dataclasses.replace(wide, sites=tuple(members))) == pytest.approx(time_ns(make, wide))


def test_columns_written_in_part_cost_more_than_whole_sectors(make) -> None:
    def written(**changes):
        return time_ns(make, make.launch([make.site(N, 4), make.site(N, 16, kind="write", buffer="y", **changes)]))

    assert written() > 1.4 * written(lanes=4 * N)


def test_spills_in_a_loop_cost_as_often_as_it_goes_round(make) -> None:
    warps = 1024 * 8
    spills = {"k": Resources(registers=32, spill_bytes=400)}

    def l1(rounds: float) -> float:
        loop = make.launch([], blocks=1024, barriers=rounds * warps, warp_instructions=1e5 * warps)
        return predict(make.profile(loop), spills, H200, 0.0).launches[0].limits["l1"]

    assert l1(64.0) == pytest.approx(64 * l1(1.0))
    assert l1(10_000.0) == pytest.approx(l1(100_000.0))  # each is for an instruction that is executed


def test_faster_memory_is_faster(make) -> None:
    launch = saxpy(make)
    assert time_ns(make, launch) < time_ns(make, launch, target=H100) < time_ns(make, launch, target=A100)


def test_an_empty_kernel_costs_its_launch(make) -> None:
    found = predict(make.profile(make.launch([], blocks=1, threads=32)), {}, H200, 0.0)
    assert H200.launch_ns < found.time_ns < 2 * H200.launch_ns
    assert found.binds == "launch"


def test_a_second_launch_costs_less_than_the_first(make) -> None:
    empty = make.launch([], blocks=1, threads=32)
    one, two = time_ns(make, empty), time_ns(make, empty, empty)
    assert one < two < 2 * one


def test_a_launch_that_stands_for_several_costs_as_they_do(make) -> None:
    one = make.launch([make.site(N, 4)], blocks=64)
    alone, three = time_ns(make, one), time_ns(make, one, one, one)
    assert time_ns(make, one, dataclasses.replace(one, times=2)) == pytest.approx(three)
    found = predict(make.profile(one, dataclasses.replace(one, times=2)), {}, H200, 8.0 * N)
    assert sum(found.parts.values()) == pytest.approx(found.time_ns)
    assert found.time_ns > 2 * alone


def test_an_empty_plan_takes_no_time(make) -> None:
    assert predict(make.profile(), {}, H200, 0.0).time_ns == 0.0


def test_row_per_thread_is_slower_than_row_per_block(make) -> None:
    per_thread = make.launch([make.site(N, 32)], blocks=128, threads=32, warp_instructions=N / 32 * 4.0)
    per_block = make.launch([make.site(N, 4)], blocks=4096, threads=256, warp_instructions=N / 32 * 4.0)
    slow = predict(make.profile(per_thread), {}, H200, 4.0 * N)
    assert slow.time_ns > 5 * time_ns(make, per_block)
    assert slow.binds in ("latency", "uncoalesced")


def test_one_address_for_all_threads_is_a_queue(make) -> None:
    hot = make.site(N, 1, kind="atomic", serial=float(N), max_same_address=float(N), unique_sectors=1.0)
    found = predict(make.profile(make.launch([hot])), {}, H200, 4.0)
    assert found.binds == "atomics"
    assert found.time_ns > N / H200.clock_ghz * 0.9


def test_integers_at_one_address_queue_a_warp_at_a_time(make) -> None:
    """8.4 million sums at one address on an H100, half of which add: 204 us of integers, 7383 us of floats."""
    lanes, warps = 4194304.0, 262144.0
    hot = make.site(lanes, 1, kind="atomic", requests=warps, serial=lanes, max_same_address=lanes, unique_sectors=1.0)
    apart = {"serial": lanes / 2, "max_same_address": lanes / 2}  # lanes of a warp at two addresses
    for changes, us in (({}, 7383), ({"integers": True}, 204), ({"integers": True, "bytes": 8}, 7383),
                        ({"integers": True, **apart}, 3700)):  # fmt: skip
        site = dataclasses.replace(hot, **changes)
        assert time_ns(make, make.launch([site], blocks=32768)) == pytest.approx(us * 1e3, rel=0.15)


def test_spread_atomics_are_much_cheaper(make) -> None:
    hot = make.site(N, 1, kind="atomic", serial=float(N), max_same_address=float(N), unique_sectors=1.0)
    spread = make.site(N, 4, kind="atomic", serial=N / 32, max_same_address=1.0)
    assert time_ns(make, make.launch([spread])) * 10 < time_ns(make, make.launch([hot]))


def test_bank_conflicts_bind(make) -> None:
    shared = make.site(N, 0, space="shared", wavefronts=float(N), buffer="tile")
    found = predict(make.profile(make.launch([make.site(N, 4), shared])), {}, H200, 4.0 * N)
    clean = dataclasses.replace(shared, wavefronts=N / 32)
    assert found.binds == "shared-conflicts"
    assert found.time_ns > 1.3 * time_ns(make, make.launch([make.site(N, 4), clean]))


def test_arithmetic_binds_when_there_is_much_of_it(make) -> None:
    launch = saxpy(make, warp_instructions=N / 32 * 2000.0)
    found = predict(make.profile(launch), {}, H200, 8.0 * N)
    assert found.binds == "compute"
    assert found.time_ns > N / 32 * 2000 / (132 * 4 * H200.clock_ghz)


def test_registers_that_keep_blocks_out_show_as_occupancy(make) -> None:
    loop = make.launch([make.site(16 * N, 4, unique_sectors=2.0 * N, block_sectors=2.0 * N)], blocks=132 * 8 * 8)
    free = predict(make.profile(loop), {"k": Resources(registers=32)}, H200, 64.0 * N)
    starved = predict(make.profile(loop), {"k": Resources(registers=255)}, H200, 64.0 * N)
    assert starved.launches[0].limits["latency"] > 3 * free.launches[0].limits["latency"]
    assert starved.parts.get("occupancy", 0.0) > starved.parts.get("latency", 0.0)
    assert starved.time_ns > free.time_ns


def test_what_cannot_be_launched_takes_forever(make) -> None:
    found = predict(make.profile(saxpy(make, threads=1024)), {"k": Resources(registers=255)}, H200, 8.0 * N)
    assert math.isinf(found.time_ns)
    assert found.binds == "occupancy"


def test_spills_cost_time(make) -> None:
    launch = saxpy(make)
    assert time_ns(make, launch, resources={"k": Resources(registers=32, spill_bytes=4096)}) > time_ns(make, launch)


def test_scratch_that_fits_the_l2_is_read_from_there(make) -> None:
    write = make.launch([make.site(N / 16, 4, buffer="t", kind="write", block_sectors=0.0)])
    read = make.launch([make.site(N / 16, 4, buffer="t")])
    chained = predict(make.profile(write, read), {}, H200, N / 4.0).launches[1]
    alone = predict(make.profile(read), {}, H200, N / 4.0).launches[0]
    assert chained.limits["dram"] == 0.0
    assert alone.limits["dram"] > 0.0


@pytest.mark.parametrize("blocks", [1, 131, 132, 133, 5000])
def test_parts_divide_the_whole_time(make, blocks) -> None:
    launches = (saxpy(make, blocks=blocks), make.launch([make.site(N, 32)], blocks=blocks))
    found = predict(make.profile(*launches), {}, H200, 8.0 * N)
    assert sum(found.parts.values()) == pytest.approx(found.time_ns)
    assert set(found.parts) <= set(BOTTLENECKS)
    assert found.binds == max(found.parts, key=lambda name: found.parts[name])


def test_more_blocks_than_sms_by_one_costs_another_wave_for_heavy_blocks(make) -> None:
    heavy = {"k": Resources(registers=64)}

    def at(blocks):
        return make.launch([], blocks=blocks, threads=1024, warp_instructions=blocks * 32 * 1e5)

    assert time_ns(make, at(133), resources=heavy) > 1.5 * time_ns(make, at(132), resources=heavy)


def test_a_register_tile_overlaps_with_itself(make) -> None:
    """The same instructions of few warps: a tile of sums in registers waits less for its own results."""
    alone = make.launch([], blocks=132, threads=128, warp_instructions=132 * 4 * 1e5)
    plain = predict(make.profile(alone), {"k": Resources(registers=32)}, H200, 0.0).launches[0]
    tiled = predict(make.profile(alone), {"k": Resources(registers=128)}, H200, 0.0).launches[0]
    assert tiled.limits["latency"] < 0.6 * plain.limits["latency"]


def test_only_a_tile_fed_from_shared_memory_has_fewer_instructions_for_its_registers(make) -> None:
    """Unrolled and jammed loops take registers and issue as much, a little shared memory or not."""
    instructions = 1056 * 8 * 1e4

    def issue(share: float, registers: int) -> float:
        lanes = 32 * share * instructions
        fed = make.site(lanes, 0, space="shared", buffer="tile", sectors=0.0, wavefronts=lanes / 32)
        busy = make.launch([fed], blocks=1056, warp_instructions=instructions)
        found = predict(make.profile(busy), {"k": Resources(registers=registers)}, H200, 0.0)
        return found.launches[0].limits["issue"]

    assert issue(0.2, 80) < issue(0.2, 32)
    assert issue(0.05, 80) == issue(0.05, 32) == issue(0.0, 80)


def test_units_that_are_narrower_than_the_issue_bind(make) -> None:
    """Population counts: 16 an SM and clock, so that 132 SMs take 2 cycles for each of a warp's."""

    def time(**counts: float) -> float:
        counted = make.launch([], blocks=1056, warp_instructions=1e7, arithmetic=Arithmetic(**counts))
        return predict(make.profile(counted), {}, H200, 0.0).launches[0].limits["units"]

    assert time() == 0.0
    assert time(special=1e7) == pytest.approx(1e7 * 2 / 132 / H200.clock_ghz, rel=0.2)
    assert time(doubles=1e7) < time(special=1e7)
    assert time(divisions=1e7) == 0.0  # counted among the special ones where they are


def test_arrays_that_the_compiler_keeps_in_registers_cost_nothing(make) -> None:
    scattered = make.site(N, 32, space="local", buffer="local memory", unique_sectors=0.0, block_sectors=0.0)

    def l1(**needs: int) -> float:
        found = predict(make.profile(make.launch([scattered])), {"k": Resources(**needs)}, H200, 0.0)
        return found.launches[0].limits["l1"]

    assert l1() == l1(local_bytes=1200) > 0  # unknown, and a frame that holds it
    assert l1(local_bytes=0) == 0
    assert l1(local_bytes=176, spill_bytes=264) > l1(local_bytes=16, spill_bytes=24)  # 12 bytes of spills, rounded up


def test_tensor_cores_bind_a_large_product_of_halves(make) -> None:
    """4096^3: at 62 % of 989 TFLOP/s, which instructions of one warp reach on Hopper, 224 us at least; an A100's 312
    take longer though all of them are reached."""
    operations = 2 * 4096.0**3
    product = make.launch([make.site(N, 4, unique_sectors=N / 16)], blocks=512, tensor_operations=operations)
    found = predict(make.profile(product), {"k": Resources(registers=200)}, H200, 8.0 * N)
    assert found.binds == "compute"
    assert 224e3 < found.time_ns < 350e3
    assert predict(make.profile(product), {}, A100, 8.0 * N).time_ns > operations / 312e12 * 1e9
