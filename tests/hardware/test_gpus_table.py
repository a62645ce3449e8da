import pytest

from fsr.errors import UsageError
from fsr.hardware.gpus import A100, H100, H200, L40S, MI300X, RTX_4090, T4, TARGETS, closest_target, target_of
from fsr.hardware.limits import REGISTERS_PER_SM


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("sm_90", H200), ("sm_90a", H200), ("H200", H200), ("NVIDIA H200", H200), ("sm_80", A100),
        ("NVIDIA A100-SXM4-80GB", A100), ("sm_89", RTX_4090), ("NVIDIA GeForce RTX 4090", RTX_4090),
        ("NVIDIA H100 80GB HBM3", H100), ("NVIDIA A100 80GB PCIe", A100), ("NVIDIA L40S", L40S), ("Tesla T4", T4),
        ("gfx942", MI300X), ("AMD Instinct MI300X", MI300X),
    ],
)  # fmt: skip
def test_targets_are_found_by_architecture_and_by_name(name, target) -> None:
    assert target_of(name) is target


def test_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="sm_31") as raised:
        target_of("sm_31")
    assert "sm_90" in raised.value.expected
    assert raised.value.where == "--target"


def test_a_gpu_that_only_looks_like_a_known_one_is_unknown() -> None:
    with pytest.raises(UsageError):
        target_of("NVIDIA RTX A4000")  # is no A40


@pytest.mark.parametrize(("arch", "sm_count"), [("sm_89", 128), ("sm_90a", 132), ("sm_87", 84), ("sm_103", 148)])
def test_the_closest_architecture_stands_in_for_an_unknown_one(arch, sm_count) -> None:
    assert closest_target(arch).sm_count == sm_count


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_figures_are_consistent(target) -> None:
    """A cache is faster than what is behind it, and every figure has a source."""
    assert target.l2_bytes_per_s > target.memory_bytes_per_s
    assert target.sm_count * target.lds_per_clock * target.clock_ghz * 1e9 > target.l2_bytes_per_s
    assert target.l1_latency_ns < target.l2_latency_ns < target.dram_latency_ns
    assert target.max_shared_bytes <= target.shared_bytes_per_sm
    assert target.max_threads_per_sm % target.warp_size == 0
    assert target.registers_per_sm >= REGISTERS_PER_SM
    assert target.sources
