import pytest

from fsr.features.roofline import Ceilings, MustMove, roofline
from fsr.features.schema import Access, Counters, Features

GB = 1e9
CEILINGS = Ceilings(4000 * GB, 30e12, 50_000_000)


def test_every_input_and_every_output_counts_once() -> None:
    """A layer norm of 8192 x 768 floats, 25 MB in and 25 MB out, in 16.1 us moves at 78 % of the copy rate."""
    found = roofline(MustMove(25.2e6, 25.2e6), CEILINGS, 16_154.0, Features())
    assert found.fraction == pytest.approx(0.78, abs=0.001)


def test_outputs_that_the_l2_may_keep_are_told_apart() -> None:
    found = roofline(MustMove(25.2e6, 25.2e6), CEILINGS, 16_154.0, Features())
    assert found.kept_bytes == 25.2e6
    assert found.drained_fraction == pytest.approx(0.39, abs=0.001)
    large = roofline(MustMove(500e6, 500e6), CEILINGS, 300_000.0, Features())
    assert (large.kept_bytes, large.drained_fraction) == (50e6, pytest.approx(950e6 / 300e-6 / 4e12))


def test_instructions_counted_go_before_those_recorded() -> None:
    recorded = Features(access=Access(warp_instructions=1e6))
    counted = Features(access=Access(warp_instructions=1e6), counters=Counters(instructions=5e5))
    assert roofline(MustMove(1, 1), CEILINGS, 10_000.0, recorded).issue_fraction == pytest.approx(32e6 / 1e-5 / 30e12)
    assert roofline(MustMove(1, 1), CEILINGS, 10_000.0, counted).issue_fraction == pytest.approx(16e6 / 1e-5 / 30e12)
    assert roofline(MustMove(1, 1), Ceilings(1e12), 10_000.0, counted).issue_fraction is None


def test_what_may_be_touched_in_part_bounds_nothing() -> None:
    """A stencil that leaves the border of its result as it was reads none of it: 268 MB in, 268 MB in and out."""
    moved = MustMove(2 * 268e6, 268e6, 2 * 268e6)
    found = roofline(moved, CEILINGS, 140_000.0, Features())
    assert found.fraction == pytest.approx(3 * 268e6 / 140e-6 / 4e12)
    assert found.drained_fraction == pytest.approx((268e6 - 50e6) / 140e-6 / 4e12)
    assert roofline(MustMove(10e6, 10e6, 20e6), CEILINGS, 1_000.0, Features()).drained_fraction == 0.0
