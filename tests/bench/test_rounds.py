"""Sides are timed in rounds; a peer that fails costs its own times only."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.bench.rounds import Arena
from fsr.bench.sides import SideFailureError
from fsr.bench.suite import load_suite
from tests.bench.conftest import FakeSides, without_torch


@pytest.fixture
def arena(sides: FakeSides, tmp_path: Path) -> Arena:
    return Arena("cuda:0", tmp_path / "exchange", tmp_path, ("torch", "compile"), rounds=6, opener=sides)


@pytest.fixture
def twice(suite_folder: Path):
    return load_suite(suite_folder).chosen(["twice"])[0]


def test_every_contender_has_its_median_and_a_lost_peer_its_reason(arena: Arena, sides: FakeSides, twice):
    compared = arena.compare(twice, {"winner": Path("w.cu")})
    assert compared.medians == pytest.approx(
        {"naive": 8080, "winner": 2020, "torch": 3030, "library": 2525, "compile": 1010}
    )
    assert compared.rounds == 6
    assert "no luck" in compared.failures.pop("compile-max")
    assert compared.failures == {}
    assert compared.facts["versions"] == {"torch": "9.9"}
    assert all(side.closed for side in sides.opened)


def test_after_a_lost_process_the_peers_that_were_well_are_prepared_again(arena: Arena, sides: FakeSides, twice):
    sides.faults = {"prepare library": SideFailureError("gone")}
    compared = arena.compare(twice, {})
    assert {"torch", "compile"} <= set(compared.medians)
    assert compared.failures["library"] == "gone"
    assert sides.opened[-1].prepared[0] == "torch"


def test_without_torch_the_kernels_are_timed_all_the_same(arena: Arena, sides: FakeSides, twice):
    without_torch(sides)
    compared = arena.compare(twice, {"winner": Path("w.cu")})
    assert set(compared.medians) == {"naive", "winner"}
    assert set(compared.failures.values()) == {"torch cannot be imported"}


def test_a_peer_lost_while_timed_keeps_what_it_had_and_is_told(arena: Arena, sides: FakeSides, twice):
    sides.faults["sample 3"] = SideFailureError("sample did not answer within 120 s")
    compared = arena.compare(twice, {})
    assert "did not answer" in compared.failures["torch"]
    assert set(compared.medians) == {"naive"}
    assert compared.rounds == 6


def test_a_workload_without_a_reference_says_so(arena: Arena, suite_folder: Path):
    (suite_folder / "maps" / "references.py").unlink()
    compared = arena.compare(load_suite(suite_folder).workloads[0], {})
    assert set(compared.failures.values()) == {"no reference in torch is written for it"}
