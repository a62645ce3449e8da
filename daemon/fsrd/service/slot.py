"""The worker of one device: takes jobs, sees each through its run, yields when somebody needs the machine."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from fsrd.jobs.job import Job
from fsrd.jobs.store import JobStore
from fsrd.running.process import RunProcess
from fsrd.service.devices import Slot

LOG = logging.getLogger(__name__)
LOOK_S = 0.5  # between two looks at whether somebody needs the machine: it is left within two seconds
BEAT_S = 3.0
GRACE_S = 1.0  # for what is under way to end by itself; the run is killed then, and resumed from its log
PARKED_S = 60.0  # a run that is paused for longer gives its memory back too
IDLE_S = 1.0


class Host(Protocol):
    """What a slot needs of the service."""

    store: JobStore

    def against(self, slot: Slot) -> str: ...
    def process_for(self, job: Job, slot: Slot) -> RunProcess: ...
    def told(self, job: Job, message: Mapping[str, Any]) -> None: ...
    def ended(self, job: Job, result: Mapping[str, Any] | None, error: str) -> None: ...
    def worked(self, seconds: float) -> None: ...


class SlotWorker:
    """One thread for one slot, which may get another driver meanwhile. ``standing``: what it does, in words; ``job``:
    which it works on, None for none."""

    def __init__(self, slot: Slot, host: Host) -> None:
        self.slot, self._host = slot, host
        self._ending = threading.Event()
        self._wake = threading.Event()
        self.standing = "idle"
        self.job: Job | None = None
        self.thread = threading.Thread(target=self._work, name=f"slot {slot.device}", daemon=True)

    def start(self) -> None:
        """Begin to take jobs."""
        self.thread.start()

    def wake(self) -> None:
        """Something was queued or is wanted: look now."""
        self._wake.set()

    def close(self) -> None:
        """Take no more; the run that goes on is left as it is, to be resumed."""
        self._ending.set()
        self._wake.set()

    def _work(self) -> None:
        while not self._ending.is_set():
            self._wake.clear()
            try:
                job = self._next()
                if job is not None:
                    self.job = job
                    _Attempt(self._host, self.slot, job, self._ending, self._stands).carry_out()
                    continue
            except Exception:  # a fault of the service: told, and no end of its work
                LOG.exception("a fault while working on %s", self.slot.device)
                self._ending.wait(IDLE_S)
            finally:
                self.job = None
            self._wake.wait(IDLE_S)

    def _next(self) -> Job | None:
        store = self._host.store
        if not store.waits(self.slot.hardware):
            self._stands("idle")
            return None
        why = self._host.against(self.slot)
        if why:
            self._stands(f"waits: {why}")
            return None
        return store.lease(self.slot.hardware, self.slot.stack)

    def _stands(self, words: str) -> None:
        self.standing = words


class _Attempt:
    """One job's way through one process."""

    def __init__(
        self, host: Host, slot: Slot, job: Job, ending: threading.Event, stands: Callable[[str], None]
    ) -> None:
        self._host, self._slot, self._job, self._ending, self._stands = host, slot, job, ending, stands
        self._process = host.process_for(job, slot)
        self._progress: Mapping[str, Any] = {}
        self._paused_at: float | None = None
        self._rests = False  # it told that it is paused
        self._run: str | None = None
        now = time.monotonic()
        self._looked = self._beaten = self._counted = now

    def carry_out(self) -> None:
        """Until the run has ended, or is left to be resumed."""
        job, store = self._job, self._host.store
        name = Path(job.kernel).name
        self._stands(f"refines {name}")
        LOG.info("%s: job %d begins on %s%s", job.kernel, job.id, self._slot.device, " again" if job.run else "")
        try:
            message = self._until_told()
            if message is None:  # left: the service ends, the job is not wanted, somebody needs the machine
                self._process.kill()
                store.give_back(job)
            elif message["kind"] == "result":
                self._process.close()
                if store.done(job, message["result"]):
                    self._host.ended(job, message["result"], "")
            elif self._failed(message):
                self._host.ended(job, None, message["error"])
        except EOFError:
            how = self._process.close()
            if store.fail(job, how, retry=True):
                self._host.ended(job, None, how)
        finally:
            self._count()
            self._process.kill()
            self._process.close()

    def _failed(self, message: Mapping[str, Any]) -> bool:
        retry = message["retry"] and not _settled(self._job, message)
        keep = message.get("kept", True)  # of what failed before it began there is no record
        return self._host.store.fail(self._job, message["error"], retry=retry, keep_run=keep)

    def _until_told(self) -> Mapping[str, Any] | None:
        """The message that the run ends with; None when it is to be left. Raises EOFError when its process ended."""
        while not self._ending.is_set():
            message = self._process.next(0.1 if self._paused_at is not None and not self._rests else LOOK_S)
            if message is not None:
                if message["kind"] in ("result", "fault"):
                    return message
                self._take(message)
            now = time.monotonic()
            if now - self._looked >= LOOK_S:
                self._looked = now
                self._count()
                if self._unwanted(now) or self._parked(now):
                    return None
        return None

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["kind"] == "run":
            self._run = message["name"]
            self._host.store.beat(self._job, run=self._run)
        else:
            self._progress = {key: value for key, value in message.items() if key != "kind"}
            self._rests = message["phase"] == "paused"
        self._host.told(self._job, message)

    def _unwanted(self, now: float) -> bool:
        """Give a sign of life; whether the job is cancelled, replaced, or somebody else's."""
        if now - self._beaten >= BEAT_S:
            self._beaten = now
            wanted = self._host.store.beat(self._job, self._progress)
        else:
            stands = self._host.store.get(self._job.id)
            wanted = None if stands is None or stands.token != self._job.token else stands.wanted
        return wanted != ""

    def _parked(self, now: float) -> bool:
        """Pause or go on as the machine's other users need it; whether the run is to be left to be resumed later."""
        why = self._host.against(self._slot)
        if why:
            self._stands(f"paused: {why}")
        if why and self._paused_at is None:
            self._paused_at = now
            self._process.say("pause")
            LOG.info("%s: paused: %s", self._job.kernel, why)
        elif not why and self._paused_at is not None:
            self._paused_at, self._rests = None, False
            self._process.say("go on")
            self._stands(f"refines {Path(self._job.kernel).name}")
            LOG.info("%s: goes on", self._job.kernel)
        if self._paused_at is None:
            return False
        return now - self._paused_at > (PARKED_S if self._rests else GRACE_S)

    def _count(self) -> None:
        """Put what it worked since the last time on the day's account; pauses do not count."""
        now = time.monotonic()
        if self._paused_at is None:
            self._host.worked(now - self._counted)
        self._counted = now


def _settled(job: Job, message: Mapping[str, Any]) -> bool:
    """Whether a kernel is itself at fault: it failed in the same words before, on a machine that was perhaps busy."""
    return bool(message.get("once")) and job.error == message["error"]
