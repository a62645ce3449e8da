"""Suites are folders; what is wrong with one is told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.bench.suite import load_suite
from fsr.bench.tuner import read_space
from fsr.errors import UsageError
from fsr.runs.kernel import load_kernel

OWN = Path(__file__).parents[2] / "benchmarks" / "suite"


def test_a_workload_knows_its_references_library_and_operations(suite_folder: Path):
    thrice, twice = load_suite(suite_folder).workloads
    assert (twice.name, twice.family, twice.library, twice.flops) == ("twice", "maps", True, "n")
    assert (thrice.library, thrice.references) == (False, suite_folder / "maps" / "references.py")


def test_patterns_choose_by_name_and_family(suite_folder: Path):
    suite = load_suite(suite_folder)
    assert [w.name for w in suite.chosen(["tw*"])] == ["twice"]
    assert len(suite.chosen(["maps/*"])) == 2
    assert [w.name for w in suite.chosen(quick=True)] == ["twice"]
    with pytest.raises(UsageError, match="no workload matches 'four'"):
        suite.chosen(["four"])


def test_a_table_that_names_nobody_is_refused(suite_folder: Path):
    (suite_folder / "suite.toml").write_text('quick = ["fourfold"]\n')
    with pytest.raises(UsageError, match="fourfold"):
        load_suite(suite_folder)


def test_our_own_suite_is_whole():
    suite = load_suite(OWN)
    assert len(suite.workloads) >= 65
    assert [w.name for w in suite.workloads if w.references is None] == []
    assert len(suite.quick) >= 5


@pytest.mark.parametrize("family", sorted({w.family for w in load_suite(OWN).workloads}))
def test_contracts_of_our_own_suite_are_read(family: str):
    for workload in load_suite(OWN).chosen([f"{family}/*"]):
        contract = load_kernel(workload.kernel).contract
        assert contract.origin.kind == "block", workload.name
        assert len(contract.timed_sizes()) == 1, workload.name
        assert workload.space is None or set(read_space(workload.space).args) <= {a.name for a in contract.args}
