"""Where the time of testing an original goes, told while it is tested."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fsr.app import checking
from fsr.contract.model import Argument, Contract, Size
from fsr.evaluation import telling
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.evaluation.telling import Telling, told_in
from fsr.records import Candidate, Launch, Plan, Role

TEXT = "__global__ void k(const float *x, float *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }\n"


def test_the_sizes_that_took_longest_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "told")
    tell, short, long = Telling(file), (("n", 1),), (("n", 9),)
    with tell.at(long):
        time.sleep(0.02)
    assert told_in(file) is None  # too soon to say anything
    monkeypatch.setattr(telling, "SOON_S", -1.0)
    with tell.at(short), tell.at(long):  # inside, it is part of what is outside
        found = told_in(file)
        assert found is not None
        assert found[0] == long
        time.sleep(0.1)
        found = told_in(file)  # what runs now counts
        assert found is not None
        assert found[0] == short
        assert found[1] >= 0.1
    with tell.at(long):
        found = told_in(file)
    assert found is not None
    assert found[0] == short


def test_nothing_is_written_where_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SOON_S", -1.0)
    monkeypatch.chdir(tmp_path)
    with Telling("").at((("n", 1),)):
        pass
    with Telling(str(tmp_path / "told")).at(()):  # no sizes, nothing to lower
        pass
    with Telling(str(tmp_path / "none" / "told")).at((("n", 1),)):  # the folder is gone: work goes on
        pass
    assert not [*tmp_path.iterdir()]
    (tmp_path / "told").write_text("{")
    assert told_in(str(tmp_path / "told")) is None


def test_an_originals_answers_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "SOON_S", -1.0)
    plan = Plan((Launch("k", ("1", "1", "1"), ("64", "1", "1"), "0", ("x", "y", "n")),))
    args = (Argument("x", "float32", Role.IN, ("n",)), Argument("y", "float32", Role.OUT, ("n",)),
            Argument("n", "int32", Role.SCALAR, (), "n"))  # fmt: skip
    contract = Contract("k", (Size("n", 1, 60, (60,)),), args, plan)
    spec = SessionSpec(contract, Candidate(TEXT, plan), "host", "", 5, str(tmp_path), told=str(tmp_path / "told"))
    session = Session(spec)
    try:
        case = session.search_cases()[-1]
        session.original.expected(case)
    finally:
        session.close()
    found = told_in(spec.told)
    assert found is not None
    assert [name for name, _ in found[0]] == ["n"]


@pytest.mark.parametrize(("sizes", "which"), [((("n", 7),), "timed size"), ((("n", 8),), "max")])
def test_a_user_who_waits_is_told_what_to_lower(
    sizes: tuple[tuple[str, int], ...], which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = SimpleNamespace(timed_sizes=lambda: [{"n": 7}])
    spec: Any = SimpleNamespace(told="file", contract=contract)
    said = list[str]()
    monkeypatch.setattr(checking, "told_in", lambda _: (sizes, 61.0))
    tick = checking._telling(spec, "k", said.append)
    tick()
    assert said == []  # it has not taken long
    monkeypatch.setattr(checking, "LONG_S", -1.0)
    tick()
    tick()
    told = f"n = {sizes[0][1]} took 1 min 1 s so far (a smaller {which} is quicker)"
    assert said == [f"k: testing the original, of which {told}"]
