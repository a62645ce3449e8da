"""The queue: jobs are submitted, leased, kept alive, ended, retried and cancelled, each in one transaction.

Whoever works on a job holds its token. A token that was taken away (its holder was silent for too long, or belonged to
an earlier life of the service) changes nothing any more, so that no job is ended twice.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fsrd.jobs.clock import Clock, MachineClock
from fsrd.jobs.job import Job, Priority, Request, State
from fsrd.jobs.schema import opened, unusable

LEASE_S = 30.0  # without a sign of life; a holder gives one every second
MOST_ATTEMPTS = 5
BACK_OFF_S, MOST_BACK_OFF_S = 5.0, 600.0
CANCEL, SUPERSEDE = "cancel", "supersede"
ENDS = {CANCEL: State.CANCELLED, SUPERSEDE: State.SUPERSEDED}
LIVE = "state IN ('queued', 'running')"
SAME = "kernel = ? AND hardware = ? AND given = ?"  # contents of one kernel, of which the last alone counts
HIDDEN = ("boot", "beat_s", "ready_s")


class JobStore:
    """The queue in one SQLite file; every method may be called from any thread.

    ``changed`` is called after every change that people would notice, with the job as it then stands, in the thread
    that made it. Raises StorageError when the file cannot be used."""

    def __init__(
        self, path: Path, clock: Clock | None = None, changed: Callable[[Job], None] = lambda job: None
    ) -> None:
        from sqlite_utils import Database

        self.path, self._clock, self._told = path, clock or MachineClock(), changed
        self._lock = threading.RLock()
        self._connection = opened(path)
        self._db = Database(self._connection, execute_plugins=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    # ------------------------------------------------------------ asking

    def submit(self, requests: Iterable[Request]) -> list[Job]:
        """Queue what is new, all or nothing; returns the jobs made. A content that the last job of its kernel had is
        not new, however that ended, but for a winner of another driver or compiler, which is verified anew when nothing
        else is to be done. An older content that waits is superseded, one that runs is to end."""
        with self._changing() as touched:
            made = [number for request in requests if (number := self._submit(request, touched)) is not None]
        with self._reading():
            return self._numbered(made)

    def _submit(self, request: Request, touched: list[int]) -> int | None:
        where = [request.kernel, request.hardware, json.dumps(request.given)]
        last = self._one(f"{SAME} ORDER BY id DESC", where)
        if last is not None and last.digest == request.digest and last.state is not State.SUPERSEDED:
            if last.won and "" != last.stack != request.stack != "":
                reason = f"its winner was found with {last.stack}"
                return self._insert(replace(request, priority=Priority.IDLE, reason=reason), touched)
            if last.state is State.QUEUED and request.priority > last.priority:
                self._set(last.id, touched, priority=int(request.priority), reason=request.reason)
            if last.wanted == SUPERSEDE:
                self._set(last.id, touched, wanted="")
            return None
        back = None
        for job in self._some(f"{SAME} AND {LIVE}", where):
            if job.digest == request.digest and job.state is State.RUNNING and job.wanted != CANCEL:
                back = job  # its content was replaced and is back before it ended
                self._set(job.id, touched, wanted="")
            else:
                self._replace(job, touched)
        return self._insert(request, touched) if back is None else None

    def _replace(self, job: Job, touched: list[int]) -> None:
        if job.state is State.QUEUED:
            self._end(job.id, touched, State.SUPERSEDED)
        elif job.wanted != CANCEL:
            self._set(job.id, touched, wanted=SUPERSEDE)

    def again(self, job: int, priority: int) -> Job | None:
        """Queue an ended job's content once more; None when there is no such job or its kernel has a live one."""
        with self._changing() as touched:
            old = self._one("id = ?", [job])
            same = [] if old is None else [old.kernel, old.hardware, json.dumps(old.given)]
            if old is None or self._some(f"{SAME} AND {LIVE}", same):
                return None
            request = Request(old.kernel, old.digest, old.hardware, priority, "asked for again", given=old.given)
            made = self._insert(request, touched)
            return self._one("id = ?", [made])

    def cancel(self, job: int) -> bool:
        """End a queued job; have whoever works on a running one end it. False when it had ended or never was."""
        with self._changing() as touched:
            found = self._one("id = ?", [job])
            if found is None or not found.state.live:
                return False
            if found.state is State.QUEUED:
                self._end(job, touched, State.CANCELLED)
            else:
                self._set(job, touched, wanted=CANCEL)
            return True

    def forget(self, kernels: Sequence[str]) -> None:
        """Supersede what waits for kernels that are gone; what runs for them is to end."""
        with self._changing() as touched:
            for kernel in kernels:
                for job in self._some(f"kernel = ? AND {LIVE}", [kernel]):
                    self._replace(job, touched)

    # ------------------------------------------------------------ working

    def lease(self, hardware: str, stack: str = "") -> Job | None:
        """Take the next job that is due for this hardware, which has this driver and compiler; None when there is none.
        Its token is the holder's. A kernel that somebody works on still, with an older content, waits."""
        now, boot = self._clock.now_s(), self._clock.boot
        with self._changing() as touched:
            due = (
                "state = 'queued' AND hardware = ? AND (ready_s <= ? OR boot <> ?) AND NOT EXISTS (SELECT 1 FROM jobs r"
                " WHERE r.kernel = jobs.kernel AND r.hardware = jobs.hardware AND r.state = 'running')"
                " ORDER BY priority DESC, id"
            )
            job = self._one(due, [hardware, now, boot])
            if job is None:
                return None
            self._set(
                job.id, touched, state=State.RUNNING.value, token=secrets.token_hex(8), boot=boot, beat_s=now,
                wanted="", stack=stack, started=job.started or self._clock.wall_s(),
            )  # fmt: skip
            return self._one("id = ?", [job.id])

    def beat(self, job: Job, progress: Mapping[str, Any] | None = None, run: str | None = None) -> str | None:
        """A sign of life of the holder, with how far it is. Returns what is wanted of it ('' for nothing), None when
        the job is no longer its own."""
        with self._changing() as touched:
            held = self._held(job)
            if held is None:
                return None
            more: dict[str, Any] = {} if progress is None else {"progress": json.dumps(dict(progress))}
            more |= {} if run is None else {"run": run}
            shown = touched if more else []
            self._set(job.id, shown, beat_s=self._clock.now_s(), boot=self._clock.boot, **more)
            return held.wanted

    def done(self, job: Job, result: Mapping[str, Any]) -> bool:
        """It came to its end. False when the job is no longer the holder's."""
        with self._changing() as touched:
            held = self._held(job)
            if held is not None:
                state = ENDS.get(held.wanted, State.DONE)
                self._end(job.id, touched, state, result=json.dumps(dict(result)), error="")
            return held is not None

    def give_back(self, job: Job) -> bool:
        """Stop working on it through no fault of its own: it is queued again, and keeps its run. One that was to be
        cancelled is. False when it is no longer the holder's."""
        with self._changing() as touched:
            held = self._held(job)
            if held is not None:
                self._return(held, touched)
            return held is not None

    def fail(self, job: Job, error: str, *, retry: bool, keep_run: bool = True) -> bool:
        """It failed. ``retry``: whether another attempt may help; it then waits twice as long each time, and after
        MOST_ATTEMPTS has failed for good. ``keep_run``: whether there is a run to go on with, or to look at."""
        with self._changing() as touched:
            held = self._held(job)
            if held is None:
                return False
            attempts, more = held.attempts + 1, {} if keep_run else {"run": ""}
            if held.wanted in ENDS:
                self._end(job.id, touched, ENDS[held.wanted], attempts=attempts, error=error)
            elif not retry or attempts >= MOST_ATTEMPTS:
                self._end(job.id, touched, State.FAILED, attempts=attempts, error=error, **more)
            else:
                ready = self._clock.now_s() + min(MOST_BACK_OFF_S, BACK_OFF_S * 2 ** (attempts - 1))
                self._set(
                    job.id, touched, state=State.QUEUED.value, token="", attempts=attempts, error=error,
                    ready_s=ready, boot=self._clock.boot, **more,
                )  # fmt: skip
            return True

    def reclaim(self, *, everything: bool = False) -> int:
        """Queue again what is held by nobody any more: silent for LEASE_S, or of an earlier boot. ``everything``: at
        the start of the service, whose earlier life held the rest. Returns how many."""
        now, boot = self._clock.now_s(), self._clock.boot
        with self._changing() as touched:
            where = "state = 'running'" + ("" if everything else " AND (boot <> ? OR beat_s < ?)")
            stale = self._some(where, [] if everything else [boot, now - LEASE_S])
            for job in stale:
                self._return(job, touched)
            return len(stale)

    # ------------------------------------------------------------ looking

    def get(self, job: int) -> Job | None:
        """One job, None when there is none of that number."""
        with self._reading():
            return self._one("id = ?", [job])

    def live(self, kernel: str, digest: str) -> Job | None:
        """The job of a content that waits or runs, None without one."""
        with self._reading():
            return self._one(f"kernel = ? AND digest = ? AND {LIVE} ORDER BY id DESC", [kernel, digest])

    def winner_before(self, job: Job) -> Job | None:
        """The last job before it of the same kernel, hardware, folders and macros that found a winner; None without."""
        where = [job.kernel, job.hardware, json.dumps(job.given), job.id]
        with self._reading():
            found = self._some(f"{SAME} AND id < ? AND state = 'done' ORDER BY id DESC", where)
        return next((one for one in found if one.won), None)

    def jobs(self, states: Sequence[State] = (), *, limit: int = 200, before: int | None = None) -> list[Job]:
        """Newest first, of these states (all when empty), at most ``limit`` and older than ``before``."""
        marks = ",".join("?" for _ in states)
        where = f"state IN ({marks})" if states else "1"
        with self._reading():
            return self._some(
                f"{where} AND id < ? ORDER BY id DESC LIMIT ?",
                [*(state.value for state in states), before if before is not None else 1 << 62, limit],
            )

    def waits(self, hardware: str) -> bool:
        """Whether a job of this hardware is due, or anyway queued."""
        with self._reading():
            return self._one("state = 'queued' AND hardware = ?", [hardware]) is not None

    def counts(self) -> dict[str, int]:
        """State to how many jobs."""
        with self._reading():
            found = self._connection.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall()
        return {state.value: dict(found).get(state.value, 0) for state in State}

    # ------------------------------------------------------------ the day's budget

    def spend(self, day: str, seconds: float) -> None:
        """Add to what a day has spent."""
        with self._reading():
            self._db.execute(
                "INSERT INTO spent VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET seconds = seconds + excluded.seconds",
                [day, seconds],
            )

    def spent_s(self, day: str) -> float:
        """Seconds that runs have taken on a day ('2026-01-31')."""
        with self._reading():
            row = self._connection.execute("SELECT seconds FROM spent WHERE day = ?", [day]).fetchone()
        return float(row[0]) if row else 0.0

    # ------------------------------------------------------------ inside

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as fault:
                raise unusable(self.path, fault) from None

    @contextmanager
    def _changing(self) -> Iterator[list[int]]:
        """One write transaction; yields the list of the jobs that it touches, told of once it is on the disk."""
        touched: list[int] = []
        with self._reading():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield touched
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            found = self._numbered(dict.fromkeys(touched))
        for job in found:
            self._told(job)

    def _insert(self, request: Request, touched: list[int]) -> int:
        now = self._clock.wall_s()
        row = {
            "kernel": request.kernel, "digest": request.digest, "hardware": request.hardware,
            "priority": int(request.priority), "state": State.QUEUED.value, "reason": request.reason,
            "created": now, "changed": now, "given": json.dumps(request.given),
        }  # fmt: skip
        cursor = self._connection.execute(
            f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})", [*row.values()]
        )
        number = int(cursor.lastrowid or 0)
        touched.append(number)
        return number

    def _held(self, job: Job) -> Job | None:
        return self._one("id = ? AND state = 'running' AND token = ?", [job.id, job.token])

    def _return(self, job: Job, touched: list[int]) -> None:
        if job.wanted in ENDS:
            self._end(job.id, touched, ENDS[job.wanted])
        else:
            self._set(job.id, touched, state=State.QUEUED.value, token="", ready_s=0.0)

    def _end(self, job: int, touched: list[int], state: State, **more: Any) -> None:
        self._set(job, touched, state=state.value, token="", wanted="", ended=self._clock.wall_s(), **more)

    def _set(self, job: int, touched: list[int], **values: Any) -> None:
        values["changed"] = self._clock.wall_s()
        settings = ", ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"UPDATE jobs SET {settings} WHERE id = ?", [*values.values(), job])
        touched.append(job)

    def _numbered(self, numbers: Iterable[int]) -> list[Job]:
        """The jobs of these numbers, in their order."""
        return self._some("id IN (SELECT value FROM json_each(?)) ORDER BY id", [json.dumps(sorted(numbers))])

    def _some(self, where: str, values: Sequence[Any]) -> list[Job]:
        return [_job(row) for row in self._db.query(f"SELECT * FROM jobs WHERE {where}", list(values))]

    def _one(self, where: str, values: Sequence[Any]) -> Job | None:
        return next(iter(self._some(where if "LIMIT" in where else f"{where} LIMIT 1", values)), None)


def _job(row: Mapping[str, Any]) -> Job:
    fields = {name: value for name, value in row.items() if name not in HIDDEN}
    fields["state"] = State(fields["state"])
    fields["progress"] = json.loads(fields["progress"])
    fields["given"] = tuple(json.loads(fields["given"]))
    fields["result"] = None if fields["result"] is None else json.loads(fields["result"])
    return Job(**fields)
