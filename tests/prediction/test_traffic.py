"""Which cache serves an access."""

import dataclasses

import pytest

from fsr.features.access import shared_passes
from fsr.features.occupancy import occupancy
from fsr.hardware.gpus import H200
from fsr.prediction.traffic import fitting, launch_traffic, residency

N = 1 << 24


def traffic(launch, warm=None):
    resident = residency(launch, occupancy(H200, launch.threads_per_block, 32, launch.shared_bytes), H200)
    return launch_traffic(launch, resident, H200, warm or {})


def test_a_coalesced_read_moves_each_byte_once(make) -> None:
    (read,) = traffic(make.launch([make.site(N, 4)]))
    assert read.dram_bytes == pytest.approx(4 * N)
    assert read.l2_sectors == pytest.approx(N / 8)
    assert read.passes == pytest.approx(read.ideal_passes)


def test_few_scattered_streams_live_in_the_l1_and_many_do_not(make) -> None:
    scattered = make.site(N, 32)
    (few,) = traffic(make.launch([scattered], blocks=132, threads=32))
    (many,) = traffic(make.launch([scattered], blocks=132 * 8, threads=256))
    assert few.l2_sectors == pytest.approx(N / 8)
    assert many.l2_sectors > 2 * few.l2_sectors
    assert many.passes > 5 * many.ideal_passes


def test_scattered_writes_pass_the_l1_unmerged(make) -> None:
    (write,) = traffic(make.launch([make.site(N, 32, kind="write", block_sectors=0.0)]))
    assert write.l2_sectors == pytest.approx(N)
    assert write.dram_bytes == pytest.approx(4 * N)


def test_a_second_pass_is_served_by_the_cache_that_holds_the_data(make) -> None:
    first, again = make.site(N, 4), make.site(N, 4, line=5, block_sectors=0.0)
    _, small_blocks = traffic(make.launch([first, again], blocks=65536))
    _, large_blocks = traffic(make.launch([first, again], blocks=2048))
    _, few_blocks = traffic(make.launch([first, again], blocks=132, threads=1024))
    assert (small_blocks.l2_sectors, small_blocks.dram_bytes) == (0.0, 0.0)  # 1 KiB a block
    assert large_blocks.l2_sectors > 0  # 32 KiB a block, 8 blocks an SM: too much for the L1 ...
    assert large_blocks.dram_bytes < 0.5 * 4 * N  # ... and about the size of the L2
    assert few_blocks.dram_bytes == pytest.approx(4 * N * (1 - fitting(0.7 * H200.l2_bytes, 4 * N)))


def test_lines_that_touch_different_parts_are_both_first(make) -> None:
    low, high = make.site(N / 2, 4), make.site(N / 2, 4, line=5)
    assert sum(t.dram_bytes for t in traffic(make.launch([low, high]))) == pytest.approx(4 * N)


def test_reuse_within_a_block_costs_no_l2_traffic(make) -> None:
    """A naive GEMM: each element of a row is read by many threads of the block."""
    read = make.site(64 * N, 1, unique_sectors=N / 8, block_sectors=N)
    (found,) = traffic(make.launch([read]))
    assert found.l2_sectors == pytest.approx(N)
    assert found.latency_ns < H200.l2_latency_ns


def test_what_an_earlier_launch_touched_may_still_be_in_the_l2(make) -> None:
    (cold,) = traffic(make.launch([make.site(N, 4)]))
    (warm,) = traffic(make.launch([make.site(N, 4)]), {"x": 1.0})
    assert cold.dram_bytes == pytest.approx(4 * N)
    assert warm.dram_bytes == 0.0


def test_without_recorded_block_sectors_the_first_line_is_taken_to_touch_all(make) -> None:
    first, again = make.site(N, 4, block_sectors=0.0), make.site(N, 4, line=5, block_sectors=0.0)
    one, two = traffic(make.launch([first, again]))
    assert one.dram_bytes == pytest.approx(4 * N)
    assert two.dram_bytes < 0.1 * 4 * N


def test_fitting_falls_off_once_the_cache_is_too_small() -> None:
    assert fitting(10, 5) == 1.0
    assert 0 < fitting(10, 15) < 1.0
    assert fitting(10, 100) == 0.0


def test_bank_conflicts_are_the_passes_beyond_one_a_request(make) -> None:
    plain = make.site(N, 0, space="shared", wavefronts=N / 32)
    conflicted = dataclasses.replace(plain, wavefronts=float(N))
    assert shared_passes((plain,)) == (N / 32, N / 32)
    total, ideal = shared_passes((conflicted,))
    assert total == N
    assert ideal == N / 32


def test_a_small_grid_leaves_sms_idle(make) -> None:
    few = make.launch([], blocks=10)
    resident = residency(few, occupancy(H200, 256, 32, 0), H200)
    assert resident.sms == 10
    assert resident.blocks_per_sm == 1
