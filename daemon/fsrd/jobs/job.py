"""A job: one content of one kernel that is to be refined for one kind of hardware."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class State(enum.StrEnum):
    """Where a job stands. The last four are final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"  # the kernel was saved with another content meanwhile

    @property
    def live(self) -> bool:
        """Whether something is still to be done."""
        return self in (State.QUEUED, State.RUNNING)


class Priority(enum.IntEnum):
    """What goes first; jobs of one priority go in the order of asking."""

    IDLE = 0  # winners verified anew
    FOUND = 10  # the kernel was there when its folder was first looked at
    MISSED = 15  # a build compiled it without a winner
    SAVED = 20
    ASKED = 30  # somebody asked for it by name


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. kernel: absolute path. digest: of the kernel and all it includes locally. hardware: which
    kind of device, as the slots of the service name it. reason: in words. stack: driver and compiler there now. given:
    -I (absolute) and -D in their order, of a build's command; empty: what the configuration says of its folder."""

    kernel: str
    digest: str
    hardware: str
    priority: int = Priority.SAVED
    reason: str = "saved"
    stack: str = ""
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands in the store. Times are Unix seconds and for people to read; None: not yet.

    run: name of its run, '' before it has one; a job that is queued again goes on with it. attempts: how often it
    failed. wanted: 'cancel' or 'supersede' when a running job is to end. token: of whoever holds it, '' while nobody
    does. progress: of its run, as last told. result: of its run (``fsr refine --json``), None before the end. error:
    of the last failure, in words. stack: driver and compiler that it was last worked on with, '' where not known.
    given: as asked for."""

    id: int
    kernel: str
    digest: str
    hardware: str
    priority: int
    state: State
    reason: str
    run: str
    attempts: int
    wanted: str
    token: str
    created: float
    changed: float
    started: float | None
    ended: float | None
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] | None = None
    error: str = ""
    stack: str = ""
    given: tuple[str, ...] = ()

    @property
    def won(self) -> bool:
        """Whether its run found a winner."""
        return self.state is State.DONE and bool(self.result and self.result.get("best"))
