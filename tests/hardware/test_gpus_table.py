import pytest

from fsr.errors import UsageError
from fsr.hardware.gpus import A100, H200, L40S, MI300X, RTX_4090, TARGETS, target_of


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("sm_90", H200), ("sm_90a", H200), ("H200", H200), ("NVIDIA H200", H200), ("sm_80", A100),
        ("NVIDIA A100-SXM4-80GB", A100), ("sm_89", RTX_4090), ("NVIDIA GeForce RTX 4090", RTX_4090),
        ("NVIDIA L40S", L40S), ("gfx942", MI300X), ("AMD Instinct MI300X", MI300X),
    ],
)  # fmt: skip
def test_targets_are_found_by_architecture_and_by_name(name, target) -> None:
    assert target_of(name) is target


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="sm_31") as raised:
        target_of("sm_31")
    assert "sm_90" in raised.value.expected
    assert raised.value.where == "--target"


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_figures_are_consistent(target) -> None:
    """A cache is faster than what is behind it, and every figure has a source."""
    assert target.l2_bytes_per_s > target.memory_bytes_per_s
    assert target.sm_count * target.lds_per_clock * target.clock_ghz * 1e9 > target.l2_bytes_per_s
    assert target.l1_latency_ns < target.l2_latency_ns < target.dram_latency_ns
    assert target.max_shared_bytes <= target.shared_bytes_per_sm
    assert target.sources
