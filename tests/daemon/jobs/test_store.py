"""The queue: what is new, what is replaced, who holds what, and what a jumping clock changes (nothing)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fsr.errors import StorageError
from fsrd.jobs.job import Job, Priority, Request, State
from fsrd.jobs.schema import MIGRATIONS
from fsrd.jobs.store import LEASE_S, MOST_ATTEMPTS, JobStore


@dataclass
class FakeClock:
    boot: str = "first"
    now: float = 100.0
    wall: float = 1e9

    def now_s(self) -> float:
        return self.now

    def wall_s(self) -> float:
        return self.wall


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[JobStore]:
    with JobStore(tmp_path / "jobs.db", clock) as store:
        yield store


def asked(kernel: str, digest: str, priority: int = Priority.SAVED, hardware: str = "host") -> Request:
    return Request(f"/k/{kernel}.cu", digest, hardware, priority)


def leased(store: JobStore, hardware: str = "host") -> Job:
    job = store.lease(hardware)
    assert job is not None
    return job


def test_one_content_is_queued_once_and_a_newer_one_replaces_it(store: JobStore) -> None:
    assert len(store.submit([asked("a", "1"), asked("b", "1"), asked("a", "1")])) == 2
    assert store.submit([asked("a", "1")]) == []
    (newer,) = store.submit([asked("a", "2")])
    assert [(job.digest, job.state) for job in reversed(store.jobs()) if job.kernel == "/k/a.cu"] == [
        ("1", State.SUPERSEDED), ("2", State.QUEUED),
    ]  # fmt: skip
    (back,) = store.submit([asked("a", "1")])
    assert (back.digest, store.get(newer.id).state) == ("1", State.SUPERSEDED)  # type: ignore[union-attr]


def test_a_queue_of_an_earlier_schema_is_opened_with_all_its_jobs(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as old:
        for statement in MIGRATIONS[0]:
            old.execute(statement)
        old.execute("PRAGMA user_version=1")
        row = ("/k/a.cu", "1", "host", 10, "done", "found", 1.0, 1.0, '{"best": {}}')
        columns = "kernel, digest, hardware, priority, state, reason, created, changed, result"
        old.execute(f"INSERT INTO jobs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    with JobStore(path, clock) as store:
        (job,) = store.jobs()
        assert (job.state, job.stack) == (State.DONE, "")
        assert store.submit([Request("/k/a.cu", "1", "host", stack="nvrtc 13.1")]) == []  # nobody knows what it had


def test_what_was_saved_last_goes_before_what_was_found(store: JobStore) -> None:
    store.submit([asked(name, "1", Priority.FOUND) for name in "abc"])
    store.submit([asked("d", "1"), asked("b", "1")])  # b waits already, and was saved now
    assert [leased(store).kernel[3] for _ in range(4)] == ["b", "d", "a", "c"]
    assert store.lease("host") is None


def test_a_running_job_whose_content_is_replaced_ends_and_only_then_the_new_one_begins(store: JobStore) -> None:
    store.submit([asked("a", "1")])
    old = leased(store)
    assert store.beat(old) == ""
    store.submit([asked("a", "2")])
    assert store.beat(old) == "supersede"
    assert store.lease("host") is None
    assert store.give_back(old)
    assert store.get(old.id).state is State.SUPERSEDED  # type: ignore[union-attr]
    assert leased(store).digest == "2"


def test_a_content_that_comes_back_while_it_runs_goes_on(store: JobStore) -> None:
    store.submit([asked("a", "1")])
    job = leased(store)
    store.submit([asked("a", "2")])
    assert store.submit([asked("a", "1")]) == []
    assert store.beat(job) == ""
    store.done(job, {"status": "improved"})
    assert store.lease("host") is None
    assert store.counts() | {"done": 1, "superseded": 1} == store.counts()


def test_a_kernel_that_is_gone_is_not_refined_and_one_that_comes_back_is(store: JobStore) -> None:
    store.submit([asked("a", "1"), asked("b", "1")])
    running = leased(store)
    store.forget(["/k/a.cu", "/k/b.cu"])
    assert store.beat(running) == "supersede"
    assert store.lease("host") is None
    assert len(store.submit([asked("a", "1"), asked("b", "1")])) == 1  # a runs still: it goes on
    assert store.beat(running) == ""


def test_what_a_user_cancelled_stays_so_until_asked_for_again(store: JobStore) -> None:
    waiting, running = store.submit([asked("a", "1"), asked("b", "1", Priority.ASKED)])
    held = leased(store)
    assert held.id == running.id
    assert store.cancel(waiting.id)
    assert store.cancel(running.id)
    assert store.beat(held) == "cancel"
    store.fail(held, "stopped", retry=True)
    assert store.submit([asked("a", "1"), asked("b", "1")]) == []
    assert not store.cancel(waiting.id)
    assert not store.cancel(99)
    assert store.counts()["cancelled"] == 2
    again = store.again(waiting.id, Priority.ASKED)
    assert again is not None
    assert store.again(waiting.id, Priority.ASKED) is None
    assert leased(store).id == again.id


def test_failures_are_tried_again_ever_later_and_in_the_end_no_more(store: JobStore, clock: FakeClock) -> None:
    store.submit([asked("a", "1")])
    waits = []
    for _ in range(MOST_ATTEMPTS):
        job = leased(store)
        store.beat(job, run="r1")
        assert store.fail(job, "a worker died", retry=True)
        began = clock.now
        while store.lease("host") is None and clock.now < began + 1000:
            clock.now += 1
            clock.wall -= 5000  # somebody sets the clock back all the time
        waits.append(clock.now - began)
        held = store.jobs([State.RUNNING])
        if held:
            assert held[0].run == "r1"
            store.give_back(held[0])
    assert waits[:3] == [5, 10, 20]
    (job,) = store.jobs()
    assert (job.state, job.attempts, job.error) == (State.FAILED, MOST_ATTEMPTS, "a worker died")


def test_a_silent_holder_loses_its_job_and_can_end_it_no_more(store: JobStore, clock: FakeClock) -> None:
    store.submit([asked("a", "1")])
    silent = leased(store)
    clock.now, clock.wall = clock.now + LEASE_S - 1, clock.wall + 1e8  # a clock that jumps takes nothing away
    assert store.reclaim() == 0
    clock.now += 2
    assert store.reclaim() == 1
    second = leased(store)
    assert store.beat(silent) is None
    assert not store.done(silent, {})
    assert not store.fail(silent, "late", retry=False)
    assert store.done(second, {"status": "unchanged"})
    assert store.counts()["done"] == 1


def test_after_a_reboot_all_is_queued_again_and_no_back_off_lasts(store: JobStore, clock: FakeClock) -> None:
    store.submit([asked("a", "1"), asked("b", "1")])
    leased(store)
    store.fail(leased(store), "no device", retry=True)
    clock.boot, clock.now = "second", 3.0  # an earlier boot's seconds mean nothing
    assert store.reclaim() == 1
    assert {leased(store).kernel, leased(store).kernel} == {"/k/a.cu", "/k/b.cu"}


def test_every_hardware_has_jobs_of_its_own(store: JobStore) -> None:
    store.submit([asked("a", "1", hardware="NVIDIA H200"), asked("a", "1", hardware="NVIDIA L4")])
    assert leased(store, "NVIDIA L4").hardware == "NVIDIA L4"
    assert store.lease("NVIDIA L4") is None
    assert store.waits("NVIDIA H200")


def test_changes_are_told_once_they_are_on_the_disk(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    def note(job: Job) -> None:
        with sqlite3.connect(tmp_path / "jobs.db") as other:
            told.append((job.state, other.execute("SELECT state FROM jobs").fetchone()[0]))

    with JobStore(tmp_path / "jobs.db", changed=note) as store:
        store.submit([asked("a", "1")])
        store.done(leased(store), {})
    assert told == [("queued",) * 2, ("running",) * 2, ("done",) * 2]


def test_a_days_spending_adds_up(store: JobStore) -> None:
    store.spend("2026-01-31", 2.5)
    store.spend("2026-01-31", 4.0)
    assert (store.spent_s("2026-01-31"), store.spent_s("2026-02-01")) == (6.5, 0.0)


def test_a_file_that_is_no_queue_is_told(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("something else, long enough to be a header " * 40)
    with pytest.raises(StorageError, match="cannot be used"):
        JobStore(tmp_path / "jobs.db")
    with JobStore(tmp_path / "newer.db"):
        pass
    with sqlite3.connect(tmp_path / "newer.db") as other:
        other.execute("PRAGMA user_version=99")
    with pytest.raises(StorageError, match="schema 99"):
        JobStore(tmp_path / "newer.db")
