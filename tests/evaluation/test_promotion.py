"""The way to a verdict on a device with a clock: the host device, with times from a script."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fsr.backends.backend import ToolReport
from fsr.backends.cuda.backend import CudaBackend
from fsr.backends.cuda.sanitizer import TOOLS
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.lock import DeviceLock
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.errors import BaselineError
from fsr.evaluation import session as sessions
from fsr.evaluation.jobs import baseline_task, compile_task, evaluate_task, roofline_of, too_fast
from fsr.evaluation.promotion import promote_task
from fsr.evaluation.refuting import refute_task
from fsr.evaluation.spec import (
    Binaries,
    CompileRequest,
    EvaluateRequest,
    PromoteRequest,
    PromotionPart,
    RefuteRequest,
    SessionSpec,
)
from fsr.evaluation.timing import TimingPolicy
from fsr.features.roofline import MustMove
from fsr.records import Candidate, ConcreteLaunch, DeviceInfo, Fault, Image, Outcome, Status
from tests.commandline import ROW_SUM
from tests.nvidia import FakeDriver, use_driver

pytestmark = pytest.mark.xdist_group("clocked")  # they take the lock of one device

TimeOf = Callable[[Sequence[ConcreteLaunch], int], float]
COPY_RATE = 1e9  # bytes a second
TIMED_ROWS = 128


def by_block(launches: Sequence[ConcreteLaunch], rows: int) -> float:
    """1 ms with blocks of 64 threads, half of it with blocks of 32."""
    return 1e6 * launches[0].block[0] / 64


class Clocked:
    """A prepared plan of the host device with a scripted clock."""

    def __init__(self, prepared: Any, time_ns: float) -> None:
        self._prepared, self._time_ns = prepared, time_ns

    def __enter__(self) -> Clocked:
        self._prepared.__enter__()
        return self

    def __exit__(self, *fault: Any) -> None:
        self._prepared.__exit__(*fault)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prepared, name)

    def time_ns(self) -> float:
        self._prepared.reset()
        self._prepared.run(10.0)
        return self._time_ns

    def time_batch_ns(self, runs: int) -> float:
        self._prepared.run(10.0)
        return self._time_ns

    def exchange(self, other: Clocked) -> None:
        """Memory of the host costs no side more."""


class ClockedHost:
    """The host device, said to be a GPU."""

    info = DeviceInfo("nvidia", "Scripted", "sm_90", sm_count=1, l2_bytes=0)
    timed, records = True, False

    def __init__(self, time_of: TimeOf) -> None:
        self._host, self.time_of = open_host_device(), time_of

    def prepare(self, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> Clocked:
        rows = next((b.array.size for b in buffers if b.name == "y"), 0)
        if launches and launches[0].block[0] == 512:
            raise DeviceFault(Fault("launch", "a block of 512 threads does not fit this device"))
        return Clocked(self._host.prepare(image, launches, buffers), self.time_of(launches, rows))

    def sm_clock_mhz(self) -> int:
        return 1980

    def copy_bandwidth(self) -> float:
        return COPY_RATE

    def close(self) -> None:
        self._host.close()


class World:
    """One kernel, its specification, and what the device and the sanitizers say."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = ROW_SUM) -> None:
        path = folder / "row_sum.cu"
        path.write_text(text)
        self.contract: Contract = load_contract(path)
        self.baseline = Candidate(text, self.contract.plan)
        policy = TimingPolicy(final_pairs=6, final_budget_ns=0.0)
        self.spec = SessionSpec(self.contract, self.baseline, "cuda:0", "sm_90", 7, str(folder), policy)
        self.time_of: TimeOf = by_block
        self.sanitizers = [ToolReport(tool, True) for tool in TOOLS]
        use_driver(monkeypatch, FakeDriver("NVIDIA H200"))
        monkeypatch.setattr(sessions, "DeviceLock", lambda name: DeviceLock(name, folder))
        monkeypatch.setattr(CudaBackend, "open", lambda _, index: ClockedHost(lambda *a: self.time_of(*a)))
        monkeypatch.setattr(CudaBackend, "toolchain", lambda _, target: HostToolchain())
        monkeypatch.setattr(CudaBackend, "sanitize", lambda *_: self.sanitizers)

    def candidate(self, block: int = 32, source: str = ROW_SUM) -> Candidate:
        launch = self.contract.plan.launches[0]
        grid = (f"ceil_div(rows, {block})", "1", "1")
        changed = replace(launch, block=(str(block), "1", "1"), grid=grid)
        return Candidate(source, replace(self.contract.plan, launches=(changed,)), (f"block:{block}",))

    def compiled(self, candidate: Candidate) -> Binaries:
        built = compile_task(CompileRequest(self.spec, candidate))
        assert isinstance(built, Binaries), built
        return built

    def evaluate(self, candidate: Candidate, incumbent_ns: float | None = 1e6, *, owed: bool = False) -> Outcome:
        compiled = self.compiled(candidate)
        return evaluate_task(EvaluateRequest(self.spec, candidate, compiled, incumbent_ns, owed))

    def promote(self, candidate: Candidate, part: PromotionPart = PromotionPart.WHOLE) -> Outcome:
        return promote_task(PromoteRequest(self.spec, candidate, self.compiled(candidate), 5.0, part))

    def refute(self, candidate: Candidate, *seeds: int) -> Outcome:
        return refute_task(RefuteRequest(self.spec, candidate, self.compiled(candidate), seeds))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(tmp_path, monkeypatch)
    sessions.close_sessions()


def test_a_faster_kernel_is_promoted_with_its_evidence(world: World) -> None:
    outcome = world.promote(world.candidate(32))
    assert outcome.status is Status.PROMOTED
    assert outcome.cases == outcome.passed > 5
    assert outcome.timing is not None
    assert outcome.timing.median_ns == pytest.approx(5e5)
    verdict = outcome.evidence["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["kind"], verdict["basis"], verdict["speedup"]) == ("faster", "measured", 2.0)
    assert outcome.evidence["sanitizers"] == dict.fromkeys(("recorder", *TOOLS), "silent")
    assert outcome.evidence["back_to_back"] == pytest.approx(2.0)
    held_out = outcome.evidence["held_out"]
    assert isinstance(held_out, list)
    assert held_out
    assert all(h["speedup"] == 2.0 and h["sizes"]["rows"] != TIMED_ROWS for h in held_out)  # type: ignore[index,call-overload]


def test_the_same_bits_as_the_originals_need_no_bound(world: World) -> None:
    assert world.promote(world.candidate(32)).status is Status.PROMOTED
    (session,) = sessions._SESSIONS.values()
    assert [case.name for case in session.original._expected if case.kind.timed] == []


def test_equal_speed_is_no_win(world: World) -> None:
    world.time_of = lambda launches, rows: 1e6
    outcome = world.promote(world.candidate(32))
    assert (outcome.status, outcome.evidence["kind"]) == (Status.CORRECT, "same")


def test_faster_at_the_timed_size_and_slower_beside_it_is_no_win(world: World) -> None:
    world.time_of = lambda launches, rows: (
        by_block(launches, rows) if rows == TIMED_ROWS else 1e6 / launches[0].block[0]
    )
    outcome = world.promote(world.candidate(32))
    assert (outcome.status, outcome.evidence["kind"]) == (Status.CORRECT, "slower elsewhere")
    assert "slower at" in str(outcome.evidence["detail"])


TIMED_TWICE = ROW_SUM.replace("timed = 128", "timed = [128, 96]").replace("timed = 64", "timed = [64, 32]")


@pytest.mark.parametrize(("share", "kind"), [(1.03, "slower elsewhere"), (1.0, "faster")])
def test_slower_at_one_timed_size_is_told_with_the_times_of_each(
    share: float, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, monkeypatch, TIMED_TWICE)
    world.time_of = lambda launches, rows: (
        by_block(launches, rows) if rows > 110 else 1e6 * (share if launches[0].block[0] == 32 else 1.0)
    )
    outcome = world.promote(world.candidate(32, TIMED_TWICE))
    sessions.close_sessions()
    assert outcome.evidence["kind"] == kind
    assert (outcome.status is Status.PROMOTED) == (kind == "faster")
    timed = outcome.evidence["timed"]
    assert [(one["sizes"]["rows"], one["speedup"]) for one in timed] == [  # type: ignore[union-attr,index,call-overload]
        (128, 2.0), (96, pytest.approx(1 / share)),
    ]  # fmt: skip
    assert ("'rows': 96" in str(outcome.evidence.get("detail"))) == (kind != "faster")


@pytest.mark.parametrize(("share", "status"), [(1.06, Status.SLOW), (1.005, Status.CORRECT)])
def test_a_little_slower_beside_the_timed_size_is_looked_at_closely(share: float, status: Status, world: World) -> None:
    world.time_of = lambda launches, rows: (
        by_block(launches, rows) if rows == TIMED_ROWS else 1e6 * (share if launches[0].block[0] == 32 else 1.0)
    )
    outcome = world.evaluate(world.candidate(32))
    assert outcome.status is status
    assert ("slower at" in str(outcome.evidence.get("detail"))) == (status is Status.SLOW)


def test_faster_at_the_timed_size_and_far_slower_beside_it_is_seen_before_the_tests(world: World) -> None:
    world.time_of = lambda launches, rows: (
        by_block(launches, rows) if rows == TIMED_ROWS else 1e6 / launches[0].block[0]
    )
    outcome = world.evaluate(world.candidate(32))
    assert (outcome.status, outcome.stage, outcome.cases) == (Status.SLOW, "screening", 1)
    assert outcome.evidence["kind"] == "slower elsewhere"
    assert re.fullmatch(r"slower at .*rows=\d+.*: 0\.50x", str(outcome.evidence["detail"]))
    assert world.evaluate(world.candidate(32), incumbent_ns=4.5e5).status is Status.SCREENED  # no new best
    tested = world.evaluate(world.candidate(32), incumbent_ns=None)  # as `fsr check` asks: nothing may be left out
    assert (tested.status, tested.stage) == (Status.CORRECT, "tests")
    assert tested.cases > 1


def test_without_a_final_only_the_tests_decide(world: World) -> None:
    outcome = world.promote(world.candidate(32), PromotionPart.TESTS)
    assert (outcome.status, outcome.timing) == (Status.CORRECT, None)
    assert outcome.evidence["sanitizers"]


def test_what_a_sanitizer_finds_refuses(world: World) -> None:
    world.sanitizers[1] = ToolReport("racecheck", True, (Fault("race", "two threads write", 12),))
    outcome = world.promote(world.candidate(32))
    assert outcome.status is Status.WRONG
    assert (outcome.evidence["kind"], outcome.evidence["line"]) == ("race", 12)


def test_a_sanitizer_that_cannot_run_is_said_and_blames_nobody(world: World) -> None:
    world.sanitizers = [ToolReport("memcheck", False, note="not installed")]
    outcome = world.promote(world.candidate(32))
    assert outcome.status is Status.PROMOTED
    assert outcome.evidence["sanitizers"] == {"recorder": "silent", "memcheck": "not available: not installed"}


RACING = ROW_SUM.replace(
    "    float sum = 0.0f;",
    "    __shared__ int last[2]; last[0] = last[1] = row; if (last[row & 1] < 0) return;\n    float sum = 0.0f;",
)


def test_a_race_that_leaves_results_right_is_found_by_the_recorder(world: World) -> None:
    outcome = world.promote(world.candidate(32, RACING))
    assert (outcome.status, outcome.evidence["kind"]) == (Status.WRONG, "race")


@pytest.mark.parametrize("seen", ["search", "timed"])
def test_a_kernel_that_is_right_for_some_sizes_only_is_wrong(world: World, seen: str) -> None:
    limit = "cols > 100" if seen == "search" else f"rows != {TIMED_ROWS} && cols > 100"
    source = ROW_SUM.replace("y[row] = sum;", f"y[row] = {limit} ? 0.0f : sum;")
    outcome = world.promote(world.candidate(32, source))
    assert outcome.status is Status.WRONG
    assert outcome.evidence["argument"] == "y"


def test_a_case_that_refuted_one_is_asked_of_another_alone(world: World) -> None:
    wrong = world.candidate(32, ROW_SUM.replace("y[row] = sum;", "y[row] = sum < -1e6f ? 0.0f : sum;"))
    found = world.promote(wrong)
    seed = found.evidence["seed"]
    assert isinstance(seed, int)
    assert found.cases > 1
    again = world.refute(wrong, seed)
    assert (again.status, again.cases, again.evidence["case"]) == (Status.WRONG, 1, found.evidence["case"])
    assert (again.stage, again.evidence["kind"]) == (found.stage, found.evidence["kind"])
    assert world.refute(world.candidate(32), seed).status is Status.CORRECT


def test_evaluation_stops_early_on_what_is_clearly_slower(world: World) -> None:
    outcome = world.evaluate(world.candidate(128), incumbent_ns=1e6)
    assert (outcome.status, outcome.stage, outcome.cases) == (Status.SLOW, "screening", 1)
    outcome = world.evaluate(world.candidate(32), incumbent_ns=1e6)
    assert (outcome.status, outcome.stage) == (Status.CORRECT, "tests")
    assert outcome.cases == outcome.passed > 5
    assert outcome.features.source is not None
    assert outcome.features.source.threads_per_block == 32


def test_what_is_no_faster_than_the_best_is_screened_and_owed_its_tests(world: World) -> None:
    wrong = world.candidate(32, ROW_SUM.replace("y[row] = sum;", "y[row] = cols == 1 ? sum + 1 : sum;"))
    screened = world.evaluate(wrong, 4.9e5)  # it takes 500 us
    assert (screened.status, screened.stage, screened.cases) == (Status.SCREENED, "screening", 1)
    assert screened.timing is not None
    assert world.evaluate(wrong, 4.9e5, owed=True).status is Status.WRONG
    right = world.evaluate(world.candidate(32), 4.9e5, owed=True)
    assert (right.status, right.stage, right.timing) == (Status.CORRECT, "tests", None)
    assert right.cases == right.passed > 5
    for incumbent_ns in (5.1e5, None):
        assert world.evaluate(wrong, incumbent_ns).status is Status.WRONG  # the best; nothing to compare with


def test_cases_that_aim_at_a_candidate_are_run_for_the_best_and_before_a_promotion(world: World) -> None:
    """At 113 rows, a number that only this candidate names."""
    source = ROW_SUM.replace("y[row] = sum;", "y[row] = rows == 113 ? 0.0f : sum;")
    assert world.evaluate(world.candidate(32, source), incumbent_ns=1e6).status is Status.WRONG
    assert world.evaluate(world.candidate(32, source), incumbent_ns=4.9e5, owed=True).status is Status.CORRECT
    assert world.promote(world.candidate(32, source)).status is Status.WRONG


def test_a_wrong_answer_is_told_with_its_smallest_case(world: World) -> None:
    outcome = world.evaluate(world.candidate(32, ROW_SUM.replace("j = 0;", "j = 1;")))
    assert (outcome.status, outcome.stage) == (Status.WRONG, "smoke")
    sizes = outcome.evidence["sizes"]
    assert isinstance(sizes, dict)
    assert math.prod(int(str(v)) for v in sizes.values()) <= 4


def test_a_launch_that_the_device_refuses_is_invalid(world: World) -> None:
    outcome = world.evaluate(world.candidate(512))
    assert outcome.status is Status.INVALID
    assert "512 threads" in str(outcome.evidence["detail"])


def test_the_baseline_is_reported_with_what_bounds_its_time(world: World) -> None:
    report = baseline_task(world.spec)
    assert report.outcome.status is Status.CORRECT
    assert report.outcome.timing is not None
    assert report.outcome.timing.median_ns == 1e6
    assert report.must_move == MustMove(4 * 128 * 64, 4 * 128)
    assert report.ceilings is not None
    assert report.ceilings.copy_bytes_per_s == COPY_RATE
    found = roofline_of(report.outcome, report)
    assert found is not None
    assert found.fraction == pytest.approx(4 * (128 * 64 + 128) / 1e6)


def test_faster_than_the_bytes_allow_is_not_believed(world: World) -> None:
    world.time_of = lambda launches, rows: by_block(launches, rows) * (0.01 if launches[0].block[0] == 32 else 100)
    report = baseline_task(world.spec)
    assert too_fast(world.evaluate(world.candidate(32), None), report)
    assert not too_fast(report.outcome, report)


def test_timed_sizes_that_the_device_cannot_launch_are_told(world: World) -> None:
    spec = replace(world.spec, baseline=world.candidate(512), contract=world.contract)
    with pytest.raises((BaselineError, DeviceFault), match="512 threads"):
        baseline_task(spec)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("j < cols", "j <= cols"), "out-of-bounds"),
        (
            ("float sum = 0.0f;", "__shared__ int last[2]; last[0] = last[1] = row; float sum = last[row & 1] < 0;"),
            "fails its own tests",
        ),
        (("float sum", "flaot sum"), "does not compile"),
    ],
)
def test_an_original_that_is_wrong_itself_is_said_to_be(world: World, change: tuple[str, str], told: str) -> None:
    baseline = replace(world.baseline, source=ROW_SUM.replace(*change))
    with pytest.raises(BaselineError, match=told) as caught:
        baseline_task(replace(world.spec, baseline=baseline))
    assert "line" in (caught.value.where or "")
