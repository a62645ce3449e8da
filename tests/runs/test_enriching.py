"""Who is looked at more closely while the device times others, and what becomes of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.features.schema import Counters, Features
from fsr.records import Image
from fsr.runs import enriching
from fsr.runs.enriching import Enricher
from fsr.workers.protocol import Completion, Task, WorkerFault
from tests.search.scripted import BASELINE, CONTRACT

COUNTED = Features(counters=Counters(l2_hits=50.0))
BINARIES = Binaries(Image("cubin", "sm_90", b"", {}, {}))


@dataclass
class Idle:
    """Two idle compile workers and a device worker that keep what they are given."""

    given: list[tuple[str, Task]] = field(default_factory=list)
    busy: int = 0

    def size(self, pool: str) -> int:
        return 2

    def pending(self, pool: str) -> int:
        return self.busy

    def submit(self, pool: str, task: Task) -> int:
        self.given.append((pool, task))
        return len(self.given) - 1


def enricher(workers: Idle, monkeypatch: pytest.MonkeyPatch, device: str = "cuda:0", there: bool = True) -> Enricher:
    monkeypatch.setattr(enriching, "find_spec", lambda name: object() if there else None)
    spec = SessionSpec(CONTRACT, BASELINE, device, "sm_90", 0)
    return Enricher(workers, spec, 60.0)  # type: ignore[arg-type]


def answer(workers: Idle, found: Enricher, result: Any, seconds: float = 0.5) -> Any:
    return found.take(Completion(len(workers.given) - 1, result, 0, seconds))


def test_the_original_is_compiled_and_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Idle()
    found = enricher(workers, monkeypatch)
    found.begin()
    assert answer(workers, found, BINARIES) is None
    found.dispatch()
    assert [task.function.split(":")[1] for _, task in workers.given] == [
        "compile_task", "record_task", "counters_task",
    ]  # fmt: skip
    assert answer(workers, found, COUNTED) == (0, COUNTED)


def test_only_idle_workers_record_and_only_the_best_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Idle(busy=1)
    found = enricher(workers, monkeypatch)
    for number, best in ((1, True), (2, False), (3, True)):
        found.offer(number, BASELINE, BINARIES, best=best)
    found.dispatch()
    assert [pool for pool, _ in workers.given] == ["compile", "device"]
    assert answer(workers, found, COUNTED) == (3, COUNTED)


def test_counters_keep_to_their_share_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Idle(busy=2)
    found = enricher(workers, monkeypatch)
    for number in range(10):
        found.offer(number, BASELINE, BINARIES, best=True)
        found.dispatch()
        answer(workers, found, COUNTED, seconds=1.0)
    assert len(workers.given) == 2  # of 60 s


def test_what_cannot_be_found_here_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Idle(busy=2)
    found = enricher(workers, monkeypatch)
    found.offer(1, BASELINE, BINARIES, best=True)
    found.dispatch()
    assert answer(workers, found, Features()) == (1, Features())
    found.offer(2, BASELINE, BINARIES, best=True)
    found.dispatch()
    assert len(workers.given) == 1


def test_a_worker_that_dies_costs_only_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Idle(busy=2)
    found = enricher(workers, monkeypatch)
    found.offer(1, BASELINE, BINARIES, best=True)
    found.dispatch()
    assert answer(workers, found, WorkerFault("crashed", "signal")) == (1, Features())
    found.offer(2, BASELINE, BINARIES, best=True)
    found.dispatch()
    assert len(workers.given) == 2


@pytest.mark.parametrize(("device", "there"), [("host", True), ("cuda:0", False)])
def test_where_nothing_can_be_found_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, device: str, there: bool) -> None:
    workers = Idle()
    found = enricher(workers, monkeypatch, device, there)
    found.begin()
    found.offer(1, BASELINE, BINARIES, best=True)
    found.dispatch()
    assert workers.given == []
