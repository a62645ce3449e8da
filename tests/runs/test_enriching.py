"""Who is looked at more closely while the device times others, and what becomes of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fsr.evaluation.spec import Binaries, Enriched, SessionSpec
from fsr.features.schema import Counters, Features
from fsr.records import Image
from fsr.runs.enriching import COUNTERS_SHARE, Enricher
from fsr.search.proposal import Proposal
from fsr.workers.protocol import Completion, Task, WorkerFault
from tests.search.scripted import BASELINE, CONTRACT

BINARIES = Binaries(Image("cubin", "sm_90", b"", {}, {}))
COUNTED = Enriched(Features(counters=Counters(l2_hits=50.0)))
NOTHING = Enriched()


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


@dataclass
class Clock:
    """Says whatever time a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def enricher(workers: Idle, device: str = "cuda:0", elapsed_s: float = 1000.0) -> Enricher:
    """One whose search began ``elapsed_s`` ago."""
    clock = Clock()
    found = Enricher(workers, SessionSpec(CONTRACT, BASELINE, device, "sm_90", 0), clock)  # type: ignore[arg-type]
    found.begin()
    workers.given.clear()
    clock.now = elapsed_s
    return found


def elite(number: int) -> Proposal:
    return Proposal(number, BASELINE, f"h{number}", None, "m", "action")


def answer(workers: Idle, found: Enricher, result: Any, seconds: float = 0.5) -> Any:
    return found.take(Completion(len(workers.given) - 1, result, 0, seconds))


def functions(workers: Idle) -> list[str]:
    return [task.function.split(":")[1] for _, task in workers.given]


def test_the_original_is_compiled_and_looked_at_first() -> None:
    workers, clock = Idle(), Clock()
    found = Enricher(workers, SessionSpec(CONTRACT, BASELINE, "cuda:0", "sm_90", 0), clock)  # type: ignore[arg-type]
    found.begin()
    assert answer(workers, found, BINARIES) is None
    clock.now = 100.0
    found.dispatch()
    assert functions(workers) == ["compile_task", "record_task", "counters_task"]
    assert answer(workers, found, COUNTED) == (0, COUNTED)


def test_only_idle_workers_record_and_only_the_best_is_counted() -> None:
    workers = Idle(busy=1)
    found = enricher(workers)
    for number, best in ((1, True), (2, False), (3, True)):
        found.offer(elite(number), BINARIES, best=best)
    found.dispatch()
    assert [pool for pool, _ in workers.given] == ["compile", "device"]
    assert answer(workers, found, COUNTED) == (3, COUNTED)


def test_most_compile_workers_stay_free_for_what_is_compiled_next() -> None:
    workers = Idle()
    workers.size = lambda pool: 9  # type: ignore[method-assign]
    found = enricher(workers)
    for number in range(1, 9):
        found.offer(elite(number), BINARIES, best=False)
    found.dispatch()
    assert functions(workers) == ["record_task"] * 2


def test_counters_keep_to_their_share_of_the_time_that_passed() -> None:
    workers = Idle(busy=2)
    found = enricher(workers, elapsed_s=50.0)
    for number in range(1, 10):
        found.offer(elite(number), BINARIES, best=True)
        found.dispatch()
        answer(workers, found, COUNTED, seconds=1.2)
    assert functions(workers) == ["counters_task"] * 2
    assert found.counting_s / 50.0 <= COUNTERS_SHARE


def test_counters_wait_until_their_share_allows_one() -> None:
    workers = Idle(busy=2)
    found = enricher(workers, elapsed_s=1.0)
    found.offer(elite(1), BINARIES, best=True)
    found.dispatch()
    assert workers.given == []


def test_what_cannot_be_found_here_is_not_asked_again() -> None:
    workers = Idle(busy=2)
    found = enricher(workers)
    refused = Enriched(note="ncu is not installed", never=True)
    for number in (1, 2):
        found.offer(elite(number), BINARIES, best=True)
        found.dispatch()
        answer(workers, found, refused)
    assert len(workers.given) == 1


def test_a_worker_that_dies_costs_only_its_answer() -> None:
    workers = Idle(busy=2)
    found = enricher(workers)
    found.offer(elite(1), BINARIES, best=True)
    found.dispatch()
    assert answer(workers, found, WorkerFault("crashed", "signal")) == (1, NOTHING)
    found.offer(elite(2), BINARIES, best=True)
    found.dispatch()
    assert len(workers.given) == 2


def test_a_device_that_records_by_itself_is_asked_nothing() -> None:
    workers = Idle()
    found = enricher(workers, device="host")
    found.offer(elite(1), BINARIES, best=True)
    found.dispatch()
    assert workers.given == []
    assert found.last_look(elite(1), BINARIES) is None
