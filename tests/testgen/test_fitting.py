"""What a case costs: its arguments, and scratch that grows with the sizes."""

from __future__ import annotations

from fsr.contract.model import Argument, Contract, Size
from fsr.records import Plan, Role, Scratch
from fsr.testgen.fitting import elements, fit


def contract(*counts: str) -> Contract:
    scratch = tuple(Scratch(f"s{i}", "float32", count, zeroed=False) for i, count in enumerate(counts))
    args = (Argument("x", "float32", Role.IN, ("t",)), Argument("y", "float32", Role.OUT, ("t",)))
    return Contract("k", (Size("t", 1, 4096, (4096,)),), args, Plan((), scratch))


def test_scratch_that_grows_with_the_sizes_counts() -> None:
    """As the scores of all positions by all do."""
    assert elements(contract(), {"t": 1000}) == 2000
    assert elements(contract("t * t"), {"t": 1000}) == 2000 + 1_000_000 - 1
    assert fit(contract("t * t"), {"t": 1001}, 1 << 18) == {"t": 501}
    assert fit(contract(), {"t": 1001}, 1 << 18) == {"t": 1001}


def test_a_workspace_of_one_length_does_not() -> None:
    """However small the sizes, it is there."""
    assert elements(contract("16777216"), {"t": 1000}) == 2000
    assert fit(contract("t + 16777216"), {"t": 1001}, 1 << 18) == {"t": 1001}


def test_scratch_of_nothing_and_less_counts_as_nothing() -> None:
    assert elements(contract("t - 2000", "3000 - t"), {"t": 1000}) == 2000
