"""The service as one object: watching, the queue, a worker for every device; any thread may ask it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsr.builds.queue import queue_of
from fsr.cache.digest import text_digest
from fsr.errors import FsrError
from fsr.given import as_key, split_given
from fsr.report.words import number_text
from fsr.settings import Settings
from fsrd.config import Config
from fsrd.jobs.job import Job, Priority, Request, State
from fsrd.jobs.store import JobStore
from fsrd.politeness.policy import Politeness
from fsrd.politeness.sensors import MachineSensors, Sensors
from fsrd.running.process import CHILD, RunProcess
from fsrd.service.bus import Bus
from fsrd.service.devices import Slot, slots_of
from fsrd.service.instance import Place
from fsrd.service.queued import take_queued
from fsrd.service.reach import Reach
from fsrd.service.results import drop, output_of, won
from fsrd.service.slot import SlotWorker
from fsrd.watching.content import Content
from fsrd.watching.index import Changes
from fsrd.watching.watcher import Watcher

LOG = logging.getLogger(__name__)
MIND_S = 5.0
LOOK_AGAIN_S = 3600.0  # between two looks at drivers and compilers: it starts a process
CLUSTER_LOOK_S = 300.0  # at a cluster, whose nodes come and go


class Service:
    """Everything but the way in; :mod:`fsrd.service.main` puts it together.

    Args: sensors, of the machine; command, what a run is started by; look, what slots there are: stand-ins in tests."""

    def __init__(
        self, settings: Settings, config: Config, slots: Sequence[Slot], *, sensors: Sensors | None = None,
        command: Sequence[str] = CHILD, look: Callable[[], Sequence[Slot]] | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.config, self.place = settings, config, Place.of(settings)
        self.place.make()
        self.bus = Bus(int(time.time() * 1000))
        self.store = JobStore(self.place.jobs, changed=self._job_changed)
        self.began = time.time()
        self._look = look or (lambda: slots_of(config.run.device, config.run.target, config.run.ray))
        self._look_each_s = CLUSTER_LOOK_S if config.run.ray else LOOK_AGAIN_S
        self._reach = Reach()
        self._sensors, self._command = sensors or MachineSensors(), command
        self.politeness = Politeness(config.polite, self._sensors, self.store.spent_s)
        self.workers = [SlotWorker(slot, self) for slot in slots]
        self.watcher: Watcher | None = None
        self._lock = threading.Lock()
        self._unspent_s = 0.0
        self._look_again = time.monotonic() + self._look_each_s
        self._ending = threading.Event()
        self._stop: Callable[[], object] = self._ending.set
        self._reload: Callable[[], object] = lambda: None
        self._minder = threading.Thread(target=self._mind, name="minder", daemon=True)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Take back what an earlier life held, then begin to watch and to work."""
        back = self.store.reclaim(everything=True)
        if back:
            LOG.info("%s of an earlier life to go on with", number_text(back, "job"))
        self._watch()
        for worker in self.workers:
            worker.start()
        self._minder.start()

    def close(self) -> None:
        """End: runs that go on are left to be resumed, their jobs queued."""
        self._ending.set()
        if self.watcher is not None:
            self.watcher.close()
        for worker in self.workers:
            worker.close()
        for worker in self.workers:
            if worker.thread.ident is not None:
                worker.thread.join(20.0)
        self.bus.close()
        self._spend()
        self.store.close()

    def reload(self, config: Config) -> None:
        """Take another configuration; what runs goes on under the old one to its end. Slots stay as they are."""
        self.config = config
        self.politeness = Politeness(config.polite, self._sensors, self.store.spent_s)
        if self.watcher is not None:
            self.watcher.close()
        self._watch()
        LOG.info("the configuration was read anew")

    def _watch(self) -> None:
        folders = [watched.folder() for watched in self.config.folder]
        roots = ", ".join(str(folder.root) for folder in folders) or "no folder"
        LOG.info("watching %s", roots)
        self.watcher = Watcher(folders, self._kernels_changed).start()

    # ------------------------------------------------------------ steering

    def on_request(self, *, stop: Callable[[], object], reload: Callable[[], object]) -> None:
        """What is done when somebody asks the service to stop or to read its configuration anew."""
        self._stop, self._reload = stop, reload

    def request_stop(self) -> None:
        """Ask it to end; returns at once."""
        self._stop()

    def request_reload(self) -> None:
        """Have the configuration read anew. Raises UsageError when it is wrong; the old one stays then."""
        self._reload()

    def content(self, kernel: str) -> Content | None:
        """What a watched kernel consists of, None for any other path."""
        return self.watcher.content(kernel) if self.watcher is not None else None

    @property
    def paused(self) -> bool:
        """Whether its owner has paused it; that outlives the service."""
        return self.place.paused.exists()

    def pause(self) -> None:
        """Begin nothing new and pause what runs, until resumed."""
        self.place.paused.touch()
        self._wake()
        self.bus.tell("service", {"paused": True})

    def resume(self) -> None:
        """End a pause."""
        self.place.paused.unlink(missing_ok=True)
        self._wake()
        self.bus.tell("service", {"paused": False})

    def ask(self, kernel: str) -> Job | None:
        """The job of a kernel that is watched, before all others from now on, or running already; None when it is not
        watched, or is as it was refined."""
        content = self.content(kernel)
        if content is None:
            return None
        found = self.store.submit(self._requests(kernel, content.digest, Priority.ASKED, "asked for"))
        self._wake()
        return found[0] if found else self.store.live(kernel, content.digest)

    @property
    def hardware(self) -> tuple[str, ...]:
        """The kinds of devices here, each once."""
        return tuple(dict.fromkeys(worker.slot.hardware for worker in self.workers))

    # ------------------------------------------------------------ how it stands

    def status(self) -> dict[str, Any]:
        """For people and programs: what it watches, does and waits for."""
        day = self.politeness.day()
        return {
            "began": self.began,
            "paused": self.paused,
            "wrong": self.health(),
            "folders": [str(watched.folder().root) for watched in self.config.folder],
            "kernels": self.watcher.kernels if self.watcher is not None else 0,
            "events": self.watcher.events if self.watcher is not None else 0,
            "jobs": self.store.counts(),
            "slots": [
                {"device": w.slot.device, "hardware": w.slot.hardware, "standing": w.standing,
                 "job": None if w.job is None else w.job.id}
                for w in self.workers
            ],
            "spent_today_s": round(self.store.spent_s(day) + self._unspent_s, 1),
        }  # fmt: skip

    def health(self) -> list[str]:
        """What is wrong, in words; [] when all is well."""
        wrong = [f"the worker of {w.slot.device} has ended" for w in self.workers if not w.thread.is_alive()]
        if not self.workers:
            wrong.append("there is no device: the cluster did not answer")
        if self.watcher is None or not self.watcher.alive:
            wrong.append("nothing is watched")
        elif self.watcher.fault:
            wrong.append(f"what is saved is not queued now: {self.watcher.fault.splitlines()[0]}")
        if not self._minder.is_alive():
            wrong.append("nobody minds the queue")
        return wrong

    # ------------------------------------------------------------ what slots need (fsrd.service.slot.Host)

    def against(self, slot: Slot) -> str:
        """Why nothing is to run on a device now."""
        paused = "its owner paused the daemon" if self.paused else ""
        return paused or self._reach.against(slot.ray) or self.politeness.against(slot.device)

    def process_for(self, job: Job, slot: Slot) -> RunProcess:
        """The process of a job's run, started."""
        variant = [slot.hardware] if len(self.hardware) > 1 else []
        variant += [text_digest("\n".join(job.given).encode("utf-8", "surrogateescape"))[:8]] if job.given else []
        output = output_of(self.config, Path(job.kernel), " ".join(variant))
        options = self.config.options(job.kernel, slot.run_device, output, slot.ray or None)
        if job.given:
            folders, defines = split_given(job.given)
            options = replace(options, include_dirs=tuple(folders), defines=tuple(defines))
        fields = {name: getattr(options, name) for name in options.__dataclass_fields__}
        order = {
            "options": fields | {"kernel": job.kernel, "output": str(output)}, "run": job.run,
            "home": self.settings.home, "cache": self.settings.cache, "workers": self.settings.workers,
            "nice": self.config.polite.nice, "idle_disk": self.config.polite.idle_disk,
        }  # fmt: skip
        return RunProcess(order, self._command)

    def told(self, job: Job, message: Mapping[str, Any]) -> None:
        """A run told how it stands."""
        if message["kind"] == "state":
            self.bus.tell("progress", {"job": job.id, **{k: v for k, v in message.items() if k != "kind"}})

    def ended(self, job: Job, result: Mapping[str, Any] | None, error: str) -> None:
        """A run has ended."""
        if result is None:
            LOG.warning("%s: job %d failed: %s", job.kernel, job.id, error)
            return
        best = result["best"]
        speed = f"{best['speedup']:.3g}x as fast ({result['basis']})" if best else result["why"]
        where = f": {result['output']}" if best else ""
        LOG.info("%s: %s: %s%s", job.kernel, result["status"], speed, where)
        if best:
            self.bus.tell("win", {"job": job.id, "kernel": job.kernel, "speedup": best["speedup"],
                                  "basis": result["basis"], "output": result["output"]})  # fmt: skip
            won(self.config.win, job, result)
        elif result["status"] == "unchanged":
            self._drop_old(job)

    def _drop_old(self, job: Job) -> None:
        """The winner of a content that is no more is none for the one that took its place, and was left as it is."""
        old = self.store.winner_before(job)
        if old is None or old.digest == job.digest:
            return
        try:
            if drop(old):
                LOG.info("%s: the winner of its earlier content is removed from its results", job.kernel)
        except OSError as fault:
            LOG.warning("%s: the winner of its earlier content cannot be removed: %s", job.kernel, fault)

    def worked(self, seconds: float) -> None:
        """A run took so long of the day's budget."""
        with self._lock:
            self._unspent_s += seconds

    # ------------------------------------------------------------ inside

    def _requests(
        self, kernel: str, digest: str, priority: Priority, reason: str, given: tuple[str, ...] = ()
    ) -> Iterator[Request]:
        """A content of a kernel, for each kind of device."""
        stacks = {worker.slot.hardware: worker.slot.stack for worker in reversed(self.workers)}
        for hardware in self.hardware:
            yield Request(kernel, digest, hardware, priority, reason, stacks[hardware], given)

    def restack(self, slots: Sequence[Slot]) -> None:
        """The devices with their drivers and compilers as they are now. Where one is another, winners of the watched
        kernels are verified anew, when nothing else is to be done: a run begins with the old one. One that is new takes
        jobs from now on; one that is gone is kept, for a cluster's node may come back: what it is given waits."""
        known = {slot.device: slot for slot in slots}
        changed = [w for w in self.workers if known.get(w.slot.device, w.slot) != w.slot]
        for worker in changed:
            LOG.info("%s: %s now, was %s", worker.slot.device, known[worker.slot.device].stack, worker.slot.stack)
            worker.slot = known[worker.slot.device]
        for device in known.keys() - {worker.slot.device for worker in self.workers}:
            LOG.info("%s: a new device", device)
            changed.append(SlotWorker(known[device], self))
            self.workers.append(changed[-1])
            changed[-1].start()
        if changed and self.watcher is not None:
            contents = self.watcher.contents()
            requests = [r for k in contents for r in self._requests(k, contents[k].digest, Priority.FOUND, "found")]
            jobs = self.store.submit(requests)
            LOG.info("%d winner(s) are to be verified anew", len(jobs))
            self._wake()

    def _kernels_changed(self, changes: Changes, found: bool) -> None:
        """In the watcher's thread: what was saved is queued, in one transaction."""
        priority, reason = (Priority.FOUND, "found") if found else (Priority.SAVED, "saved")
        if changes.gone:
            self.store.forget(changes.gone)
        kernels = sorted(changes.saved, key=_saved_ns, reverse=True) if found else list(changes.saved)
        jobs = self.store.submit(
            request for kernel in kernels for request in self._requests(kernel, changes.saved[kernel], priority, reason)
        )
        if found:
            live = [job.kernel for job in self.store.jobs([State.QUEUED, State.RUNNING], limit=1 << 30)]
            self.store.forget([kernel for kernel in dict.fromkeys(live) if not Path(kernel).is_file()])
        if jobs:
            named = ", ".join(Path(job.kernel).name for job in jobs[:5])
            LOG.info("%s queued: %s%s", number_text(len(jobs), "job"), named, ", ..." if len(jobs) > 5 else "")
        self._wake()

    def _watched(self, kernel: str, given: tuple[str, ...]) -> Content | None:
        """The content of a kernel that is watched and compiled under just these -I and -D."""
        options = self.config.options(kernel, "", Path())
        own = as_key(kernel, options.include_dirs, options.defines)
        return self.content(kernel) if as_key(kernel, *split_given(given)) == own else None

    def _missed(self, kernel: str, digest: str, given: tuple[str, ...]) -> None:
        """A build compiled a kernel without a winner; it need not lie in a watched folder."""
        if self.store.submit(self._requests(kernel, digest, Priority.MISSED, "a build missed", given)):
            LOG.info("%s: queued, a build had no winner for it", kernel)
            self._wake()

    def _job_changed(self, job: Job) -> None:
        self.bus.tell("job", {"job": job.id, "kernel": job.kernel, "state": job.state.value, "wanted": job.wanted})

    def _wake(self) -> None:
        for worker in self.workers:
            worker.wake()

    def _mind(self) -> None:
        """Now and then: leases that ran out, the day's account, what builds left."""
        while not self._ending.wait(MIND_S):
            if time.monotonic() >= self._look_again:
                self._look_again = time.monotonic() + self._look_each_s
                with suppress(FsrError):
                    self.restack(self._look())
            with suppress(Exception):  # tried again in a moment; health says when this thread is gone
                self._spend()
                self.store.reclaim()
                take_queued(queue_of(self.settings.home), self._watched, self._missed)

    def _spend(self) -> None:
        with self._lock:
            seconds = self._unspent_s
        if seconds:
            self.store.spend(self.politeness.day(), seconds)
            with self._lock:  # not before they are written: the disk may be full
                self._unspent_s -= seconds


def _saved_ns(kernel: str) -> int:
    """When a kernel was last saved: what somebody worked on last goes first."""
    try:
        return Path(kernel).stat().st_mtime_ns
    except OSError:
        return 0
