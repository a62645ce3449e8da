"""The scripts that produce the acceptance figures, on small runs here and on made-up results."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


acceptance, throughput = script("acceptance"), script("throughput")
correlation, lookup_bench = script("correlation"), script("lookup_bench")

# ---------------------------------------------------------------- acceptance


def improved(speedup: float, low: float | None = None, **sanitizers: str) -> dict[str, Any]:
    best = {
        "median_ns": 1e6 / speedup, "speedup": speedup, "speedup_ci95": [low or speedup * 0.99, speedup * 1.01],
        "roofline_fraction": 0.9, "actions": ["tile@kernel"], "sanitizers": sanitizers or {"memcheck": "silent"},
    }  # fmt: skip
    device = {"name": "NVIDIA H200", "arch": "sm_90", "driver": "580", "runtime": "cuda 13"}
    refine = {
        "status": "improved", "basis": "measured", "device": device, "baseline": {"median_ns": 1e6}, "best": best,
        "evaluated": 200, "candidates_per_second": 12.5, "seconds": 59.0,
    }  # fmt: skip
    return {"refine": refine, "check_device": {"status": "passed"}, "check_host": {"status": "passed"}}


def eight(**changes: dict[str, Any]) -> dict[str, Any]:
    return {name: improved(10.0) for name in acceptance.FIRST_EIGHT} | changes


def test_thresholds_hold_on_good_results() -> None:
    told = acceptance.acceptance(eight(), "cuda")
    assert len(told) == 7
    assert all(held is True for held in told.values())
    assert acceptance.geometric_mean(eight()) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"softmax": improved(9.9)}, {"softmax >= 10"}),
        ({"transpose": improved(1.5)}, {"transpose >= 2"}),
        ({"saxpy": improved(1.01, 0.98)}, {"none slower"}),
        ({"gemm": improved(10.0) | {"check_host": {"status": "failed"}}}, {"all right, checked on both devices"}),
        ({"gemm": improved(10.0, racecheck="not available: no")}, {"sanitizers silent on every winner"}),
        ({"saxpy": {"refine": {"status": "broken", "detail": "boom"}}},
         {"geometric mean >= 4", "all right, checked on both devices"}),
    ],
)  # fmt: skip
def test_each_threshold_can_fail(changes: dict[str, Any], broken: set[str]) -> None:
    told = acceptance.acceptance(eight(**changes), "cuda")
    assert {name for name, held in told.items() if not held} == broken


def test_an_unchanged_kernel_counts_as_one_and_a_missing_one_is_not_judged() -> None:
    results = eight(saxpy={"refine": {"status": "unchanged"}})
    assert acceptance.geometric_mean(results) == pytest.approx(10 ** (7 / 8))
    assert acceptance.acceptance({"saxpy": improved(2.0)}, "cuda")["softmax >= 10"] is None
    assert acceptance.geometric_mean({"saxpy": improved(2.0)}) is None


class FakeFsr:
    """Answers the commands that the script runs: one example is refined, one breaks, one stays as it is."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def __call__(self, command: Sequence[str], limit_s: float, environment: Mapping[str, str]) -> dict[str, Any]:
        words = list(command[3:])
        self.commands.append(" ".join(Path(w).name for w in words))
        assert environment["FSR_HOME"].endswith("home")
        if words[0] == "check":
            return {"status": "passed"}
        name = Path(words[1]).stem
        if name == "gemm":
            return {"status": "broken", "detail": "exit code -9 | and\nno JSON"}
        if name == "saxpy":
            return improved(1.0)["refine"] | {"status": "unchanged", "best": None}
        Path(words[words.index("-o") + 1]).write_text("// winner")
        return improved(12.0)["refine"]


def test_one_broken_example_loses_no_other(tmp_path: Path) -> None:
    fake = FakeFsr()
    run = acceptance.Acceptance(tmp_path, "5s", "cuda:0", fake)
    run.all([Path(f"examples/{name}.cu") for name in ("gemm", "softmax", "saxpy")])
    assert fake.commands[0] == "refine gemm.cu --budget 5s --device cuda:0 -o gemm.fsr.cu --json"
    checks = {c for c in fake.commands if c.startswith("check")}
    assert checks == {f"check softmax.fsr.cu --against softmax.cu --device {d} --json" for d in ("cuda:0", "host")}
    told = json.loads((tmp_path / "results.json").read_text())
    assert set(told["examples"]) == {"gemm", "softmax", "saxpy"}
    assert told["examples"]["softmax"]["check_host"] == {"status": "passed"}
    lines = (tmp_path / "table.md").read_text().splitlines()
    width = {line.count("|") for line in lines if line.startswith("|")}
    assert len(width) == 1, "every row has every column"
    assert any("12.00 [11.88, 12.12]" in line and "passed / passed" in line for line in lines)
    assert any(line.startswith("| saxpy") and "unchanged" in line for line in lines)
    assert any(line.startswith("| gemm") and "exit code -9 / and no JSON" in line for line in lines)


def test_passes_over_some_examples_are_joined(tmp_path: Path) -> None:
    for name in ("softmax", "gemm"):
        (tmp_path / name).mkdir()
        acceptance.write(tmp_path / name, {name: improved(11.0)}, "--budget 60s --device cuda:0")
    parts = [str(tmp_path / name / "results.json") for name in ("softmax", "gemm")]
    assert acceptance.main([str(tmp_path / "both"), "--merge", *parts]) == 0
    assert set(json.loads((tmp_path / "both" / "results.json").read_text())["examples"]) == {"softmax", "gemm"}


@pytest.mark.parametrize(
    ("program", "detail"),
    [("import time; time.sleep(60)", "not finished"), ("print('no')", "exit code 0 and no JSON"),
     ("import sys; sys.exit('fsr: it broke')", "fsr: it broke")],
)  # fmt: skip
def test_a_command_that_breaks_is_told_not_raised(program: str, detail: str) -> None:
    limit = 0.5 if "sleep" in program else 20.0
    told = acceptance.run_json([sys.executable, "-c", program], limit, {})
    assert told["status"] == "broken"
    assert detail in told["detail"]


def test_a_command_that_works_gives_its_object() -> None:
    told = acceptance.run_json([sys.executable, "-c", 'print(\'{"status": "passed"}\')'], 20.0, {})
    assert (told["status"], told["exit_code"]) == ("passed", 0)


# ---------------------------------------------------------------- throughput and lookup


def test_throughput_takes_tilings_through_both_pools(tmp_path: Path) -> None:
    throughput.main([str(tmp_path), "--device", "host", "--most", "3", "--workers", "1"])
    told = json.loads((tmp_path / "throughput.json").read_text())
    assert (told["candidates"], sum(told["statuses"].values()), told["faults"]) == (3, 3, [])
    assert set(told["statuses"]) <= {"correct", "screened", "slow"}
    assert told["per_second"] == pytest.approx(3 / told["seconds"], rel=0.05)
    assert told["compile_seconds_summed"] > 0
    assert 0 < told["device_busy_share"] <= 1


def test_the_space_of_the_gemm_has_about_three_hundred_candidates() -> None:
    kernel = throughput.load_kernel(BENCHMARKS.parent / "examples" / "gemm.cu")
    found = throughput.space(kernel, "sm_90", 0)
    assert 280 <= len(found) <= 400
    assert len({c.source for c in found}) == len(found)


def test_lookup_bench_measures_hits_and_a_miss(tmp_path: Path) -> None:
    lookup_bench.main([str(tmp_path), "--runs", "2", "--entries", "3,40"])
    told = json.loads((tmp_path / "lookup.json").read_text())
    assert told["miss_exit_code"] == 3
    assert set(told["median_ms"]) == {"import sqlite3", "3 entries", "40 entries"}
    assert told["ratio"] > 0  # a ratio of pairs; what it is on a busy machine says nothing


# ---------------------------------------------------------------- correlation


def test_spearman_agrees_with_known_values_and_shares_ranks_among_ties() -> None:
    assert correlation.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert correlation.spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert correlation.ranks([5.0, 1.0, 5.0, 9.0]) == [2.5, 1.0, 2.5, 4.0]
    # by hand: ranks 1 2.5 2.5 4 against 1 3 2 4
    assert correlation.spearman([1, 2, 2, 3], [1, 3, 2, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5.0))
    assert correlation.spearman([1, 1, 1], [1, 2, 3]) is None


def test_ratio_errors_are_factors_between_pairs() -> None:
    exact = correlation.compared([(2.0 * t, t) for t in (1.0, 3.0, 9.0)], None)
    assert exact["ratio_error"] == {"50 %": 1.0, "80 %": 1.0, "90 %": 1.0, "95 %": 1.0}
    assert (exact["spearman"], exact["predicted_over_measured"], exact["enough"]) == (1.0, 2.0, False)
    off = correlation.compared([(1.0, 1.0), (4.0, 2.0)], (1.0, 1.0))
    assert off["ratio_error"]["95 %"] == pytest.approx(2.0)
    assert off["speedup_error"]["50 %"] == pytest.approx(2.0)


def test_pairs_that_lie_apart_are_told_where_the_faster_one_is_predicted_faster() -> None:
    told = correlation.told([(1.0, 100.0), (2.0, 105.0), (1.5, 130.0), (1.5, 200.0)])
    assert told == {"10 %": (2, 5), "25 %": (2, 4), "50 %": (1, 3)}  # a tie is not told
    assert correlation.compared([(1.0, 100.0), (2.0, 300.0)], None)["told"]["50 %"] == (1, 1)


def test_the_candidates_that_are_predicted_spread_over_the_whole_range() -> None:
    def measured(i: int) -> Any:
        candidate = correlation.Candidate(f"// {i}", empty_plan())
        return correlation.Measured("m", candidate, float(i), "correct")

    many = [measured(i) for i in range(1, 201)]
    random.Random(1).shuffle(many)
    chosen = [m.time_ns for m in correlation.spread(many, 40)]
    assert len(chosen) == 40
    assert chosen == sorted(set(chosen))
    assert (chosen[0], chosen[-1]) == (1.0, 200.0)
    assert len(correlation.spread(many[:7] * 2, 40)) == 7, "the same candidate counts once"


def empty_plan() -> Any:
    from fsr.records import Plan

    return Plan(())


@pytest.mark.parametrize("whole", [True, False], ids=["candidates in the log", "made again"])
def test_a_log_becomes_pairs_of_predicted_and_measured(tmp_path: Path, whole: bool) -> None:
    write_log(tmp_path / "runs" / "bench-stencil" / "home" / "runs" / "20260101-000000-stencil-0000", whole=whole)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "events.jsonl").write_text('{"kind": "start", "at": 0}\n')
    assert correlation.main([str(tmp_path / "out"), "--runs", str(tmp_path / "runs"), "--workers", "1"]) == 0
    told = json.loads((tmp_path / "out" / "correlation.json").read_text())
    example = told["examples"]["stencil"]
    assert example["not_predicted"] == []
    assert (example["candidates"], example["timed"]) == (4, 4)
    assert example["spearman"] >= 0.5
    assert [p["move"] for p in example["pairs"]].count("baseline") == 1
    assert "broken" in told["runs_left_out"]
    assert set(told["summary"]["told"]) == {"10 %", "25 %", "50 %"}


def write_log(folder: Path, *, whole: bool) -> None:
    """A run on a GPU as its log would tell it: the baseline and three coarsenings, each slower than the one before."""
    from fsr.cache.digest import text_digest
    from fsr.identity import candidate_hash, to_json
    from fsr.records import Basis, Outcome, Status, Timing
    from fsr.runs.kernel import load_kernel
    from fsr.runs.log import EventLog
    from fsr.runs.options import RefineOptions
    from fsr.runs.resuming import RunStart
    from fsr.search.proposal import Rules, applied, moves_of
    from fsr.transform.registry import all_actions

    def outcome(time_ns: float, status: Status = Status.CORRECT) -> Outcome:
        return Outcome(status, "tests", timing=Timing(Basis.MEASURED, time_ns, (time_ns,)))

    path = BENCHMARKS.parent / "examples" / "stencil.cu"
    kernel = load_kernel(path)
    subject = Rules(kernel.contract).subject(kernel.baseline)
    coarser = [(a, m) for a, m in moves_of(subject, all_actions()) if m.action == "coarsen-rows"][::-2]
    made = [(m.name, applied(a, subject, m)) for a, m in coarser]
    with EventLog(folder) as log:
        options = RefineOptions(Path("/elsewhere") / path.name)
        source = text_digest(path.read_bytes())
        start = RunStart(options, source, kernel.contract_digest(), None, (), outcome(9e4))
        log.append("start", **(start.to_json() | {"source": start.source}))
        for number, (move, candidate) in enumerate([("baseline", kernel.baseline), *made]):
            assert candidate is not None
            extra = {"candidate": to_json(candidate)} if whole else {}
            log.append(
                "ask", id=number, hash=candidate_hash(candidate), move=move, parent=0 if number else None,
                origin="action" if number else "baseline", **extra,
            )  # fmt: skip
            told = outcome(3e4 + 1e3 * number, Status.SLOW) if number else outcome(9e4)
            log.append("tell", id=number, outcome=to_json(told))
