"""A pass over a suite: what is recorded, gone on with and left out; on the host device and with fake sides."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fsr.bench import running
from fsr.bench.results import read
from fsr.bench.running import Bench, BenchOptions, tabled
from fsr.bench.suite import load_suite
from fsr.errors import UsageError
from fsr.records import Basis
from tests.bench.conftest import FakeSides

IMPROVED = {
    "status": "improved", "basis": "predicted", "device": {"name": "CPU", "arch": "x86", "target": "sm_90"},
    "baseline": {"median_ns": 900.0}, "best": {"median_ns": 300.0, "speedup": 3.0, "actions": ["vectorise"]},
    "output": "winners/x.fsr.cu", "why": "the budget ended", "evaluated": 7,
}  # fmt: skip


def refined(told: Mapping[str, Any], seen: list[str]):
    def refine(asked, kernel: Path, log: Path) -> Mapping[str, Any]:
        seen.append(kernel.stem)
        return told

    return refine


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(running, "resolve_device", lambda spec: spec)
    monkeypatch.setattr(running, "backend_named", lambda name: SimpleNamespace(basis=Basis.MEASURED))


def test_on_the_host_device_ratios_are_predicted_and_peers_left_out(suite_folder: Path, tmp_path: Path):
    said, seen = [], []
    options = BenchOptions(tmp_path / "out", device="host", peers=("torch",))
    bench = Bench(load_suite(suite_folder), options, lambda kept, now: said.append(kept), refined(IMPROVED, seen))
    records = bench.run()
    assert seen == ["thrice", "twice"]
    assert {r.speedup for r in records.values()} == {3.0}
    assert {r.basis for r in records.values()} == {"predicted"}
    assert any("peers are left out: torch" in line for line in said)
    assert "predicted times" in (tmp_path / "out" / "table.md").read_text()


def test_a_folder_is_gone_on_with_unless_again(suite_folder: Path, tmp_path: Path):
    seen: list[str] = []
    suite, out = load_suite(suite_folder), tmp_path / "out"
    Bench(suite, BenchOptions(out, device="host", only=("twice",)), refine=refined(IMPROVED, seen)).run()
    Bench(suite, BenchOptions(out, device="host"), refine=refined(IMPROVED, seen)).run()
    assert seen == ["twice", "thrice"]
    Bench(suite, BenchOptions(out, device="host", quick=True, again=True), refine=refined(IMPROVED, seen)).run()
    assert seen == ["twice", "thrice", "twice"]


def test_parts_share_the_work_and_the_folder(suite_folder: Path, tmp_path: Path):
    seen: list[str] = []
    for number in (1, 2):
        options = BenchOptions(tmp_path / "out", device="host", part=(number, 2))
        Bench(load_suite(suite_folder), options, refine=refined(IMPROVED, seen)).run()
        assert len(seen) == number
    assert set(read([tmp_path / "out"])) == {"twice", "thrice"}


@pytest.mark.usefixtures("on_a_gpu")
def test_on_a_gpu_all_contenders_are_in_the_record(suite_folder: Path, tmp_path: Path, sides: FakeSides):
    options = BenchOptions(tmp_path / "out", device="cuda:1", peers=("torch", "compile"), only=("twice",))
    record = Bench(load_suite(suite_folder), options, refine=refined(IMPROVED, []), opener=sides).run()["twice"]
    assert record == read([tmp_path / "out"])["twice"]
    assert record.speedup == pytest.approx(4.0)
    assert (record.best_peer, record.against_peer) == ("compile", pytest.approx(0.5))
    assert (record.flops, record.bytes) == (2048.0, 16384.0)
    assert record.device["name"] == "Fake GPU"
    assert list(record.failures) == ["compile-max"]
    assert "0.50×" in tabled([tmp_path / "out"], None)


@pytest.mark.usefixtures("on_a_gpu")
def test_timing_anew_keeps_the_winner(suite_folder: Path, tmp_path: Path, sides: FakeSides):
    seen: list[str] = []
    suite, options = load_suite(suite_folder), BenchOptions(tmp_path / "out", device="cuda:0", only=("twice",))
    Bench(suite, options, refine=refined(IMPROVED, seen), opener=sides).run()
    sides.times["winner"] = 1000.0
    again = BenchOptions(tmp_path / "out", device="cuda:0", retime=True)
    records = Bench(suite, again, refine=refined(IMPROVED, seen), opener=sides).run()
    assert seen == ["twice"]
    assert records["twice"].speedup == pytest.approx(8.0)
    assert sides.opened[-1].asked.candidates == {"winner": Path("winners/x.fsr.cu")}


@pytest.mark.usefixtures("on_a_gpu")
def test_an_original_that_stays_is_its_own_winner(suite_folder: Path, tmp_path: Path, sides: FakeSides):
    unchanged = {**IMPROVED, "status": "unchanged", "best": None, "output": None}
    options = BenchOptions(tmp_path / "out", device="cuda:0", only=("twice",))
    record = Bench(load_suite(suite_folder), options, refine=refined(unchanged, []), opener=sides).run()["twice"]
    assert (record.status, record.speedup) == ("unchanged", 1.0)


@pytest.mark.usefixtures("on_a_gpu")
def test_a_refinement_that_fails_is_recorded_and_its_peers_are_timed(
    suite_folder: Path, tmp_path: Path, sides: FakeSides
):
    failed = {"status": "failed", "detail": "exit code 1: no luck"}
    options = BenchOptions(tmp_path / "out", device="cuda:0", peers=("torch",), only=("twice",))
    record = Bench(load_suite(suite_folder), options, refine=refined(failed, []), opener=sides).run()["twice"]
    assert (record.status, record.detail, record.speedup) == ("failed", "exit code 1: no luck", None)
    assert set(record.times_ns) == {"naive", "torch", "library"}


def test_an_unknown_peer_is_told_at_once(tmp_path: Path):
    with pytest.raises(UsageError, match="unknown peer 'tensorflow'"):
        BenchOptions(tmp_path, peers=("tensorflow",))
