"""Against NVIDIA's occupancy calculator, by hand."""

import pytest

from fsr.features.occupancy import occupancy
from fsr.hardware.gpus import H200, MI300X, RTX_4090


@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "blocks", "warps", "limit"),
    [
        (H200, 256, 32, 0, 8, 64, "threads"),
        (H200, 256, 64, 0, 4, 32, "registers"),
        (H200, 1024, 40, 0, 1, 32, "registers"),
        (H200, 1024, 32, 0, 2, 64, "threads"),
        (H200, 32, 16, 0, 32, 32, "blocks"),
        (H200, 33, 16, 0, 32, 64, "threads"),  # a partial warp takes a whole one's place
        (H200, 128, 32, 48 * 1024, 4, 16, "shared"),
        (H200, 128, 32, 227 * 1024, 1, 4, "shared"),
        (H200, 512, 255, 0, 0, 0, "registers"),
        (RTX_4090, 1024, 32, 0, 1, 32, "threads"),
        (RTX_4090, 768, None, 0, 2, 48, "threads"),
        (MI300X, 256, 32, 0, 8, 32, "threads"),
    ],
)  # fmt: skip
def test_blocks_an_sm_holds(target, threads, registers, shared, blocks, warps, limit) -> None:
    found = occupancy(target, threads, registers, shared)
    assert (found.blocks, found.warps, found.limit) == (blocks, warps, limit)


def test_the_fraction_is_of_the_warps_that_fit() -> None:
    assert occupancy(H200, 256, 64, 0).fraction == 0.5
    assert occupancy(RTX_4090, 1024, 32, 0).fraction == pytest.approx(32 / 48)
