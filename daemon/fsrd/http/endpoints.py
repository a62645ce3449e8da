"""What can be asked of the service over HTTP: one table, from which the routes and the OpenAPI document are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fsr.cache import lookup
from fsr.cache.entry import Entry
from fsr.cache.store import Store
from fsr.errors import FsrError
from fsr.given import as_key
from fsr.runs.record import RunRecord, records
from fsr.runs.view import run_view
from fsrd.jobs.job import Job, Priority, State
from fsrd.service.service import Service
from fsrd.strict import Strict

Number = Annotated[int, msgspec.Meta(ge=1, le=(1 << 53) - 1)]
RUN_NAME = re.compile(r"[^/\x00-\x1f.][^/\x00-\x1f]{0,254}")  # a folder's: kernels have any names


class Refused(Exception):  # noqa: N818  # an answer, not a fault
    """An answer other than 200. status: of HTTP; says: in one sentence."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(says)
        self.status, self.says = status, says


class NoFields(Strict, frozen=True):
    """Nothing is asked for by name."""


class JobsQuery(Strict, frozen=True):
    """state: only jobs that stand so. limit: at most so many. before: only jobs with smaller numbers."""

    state: State | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    before: Number | None = None


class RunsQuery(Strict, frozen=True):
    """limit: at most so many, newest first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class KernelQuery(Strict, frozen=True):
    """kernel: the path of a watched kernel."""

    kernel: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class JobPath(Strict, frozen=True):
    """job: its number."""

    job: Number


class RunPath(Strict, frozen=True):
    """run: its name."""

    run: Annotated[str, msgspec.Meta(pattern=f"^{RUN_NAME.pattern}$")]


class SourcePath(Strict, frozen=True):
    """source: the SHA-256 of a kernel file, in hex."""

    source: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Jobs(Strict, frozen=True):
    """Newest first."""

    jobs: list[Job]


class Done(Strict, frozen=True):
    """done: whether anything changed."""

    done: bool


class Fault(Strict, frozen=True):
    """error: what is wrong, in words."""

    error: str


Handler = Callable[[Service, Any, Any], Any]
"""(service, path fields, query or body fields) to the answer. Raises Refused and FsrError."""


@dataclass(frozen=True)
class Endpoint:
    """One operation. given: of the query for GET, of the JSON body for POST. answer: its type."""

    method: str
    path: str
    handler: Handler
    says: str
    in_path: type = NoFields
    given: type = NoFields
    answer: Any = dict[str, Any]
    refusals: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The operation's id in the OpenAPI document."""
        return self.handler.__name__.strip("_")


# ---------------------------------------------------------------- jobs


def _jobs(service: Service, _: Any, query: JobsQuery) -> Jobs:
    states = () if query.state is None else (query.state,)
    return Jobs(jobs=service.store.jobs(states, limit=query.limit, before=query.before))


def _job(service: Service, path: JobPath, _: Any) -> Job:
    job = service.store.get(path.job)
    if job is None:
        raise Refused(404, f"there is no job {path.job}")
    return job


def _refine(service: Service, _: Any, body: KernelQuery) -> Job:
    if service.content(body.kernel) is None:
        raise Refused(404, "no kernel of that path is watched")
    job = service.ask(body.kernel)
    if job is None:
        raise Refused(409, "this content was refined already; POST /api/jobs/N/again has its job done once more")
    return job


def _cancel(service: Service, path: JobPath, _: Any) -> Done:
    _job(service, path, None)
    return Done(done=service.store.cancel(path.job))


def _again(service: Service, path: JobPath, _: Any) -> Job:
    _job(service, path, None)
    job = service.store.again(path.job, Priority.ASKED)
    if job is None:
        raise Refused(409, "the kernel has a job that has not ended")
    return job


# ---------------------------------------------------------------- runs and winners


def _record(service: Service, path: RunPath) -> RunRecord:
    folder = Path(service.settings.runs) / path.run
    if not RUN_NAME.fullmatch(path.run) or not (folder / "events.jsonl").is_file():
        raise Refused(404, "there is no run of that name")
    return RunRecord(folder)


def _runs(service: Service, _: Any, query: RunsQuery) -> dict[str, Any]:
    found = records(Path(service.settings.runs))[: query.limit]
    return {"runs": [{"run": r.name, "standing": r.standing(), "going_on": r.going_on} for r in found]}


def _run(service: Service, path: RunPath, _: Any) -> dict[str, Any]:
    return run_view(_record(service, path))


def _lookup(service: Service, _: Any, query: KernelQuery) -> dict[str, Any]:
    if service.content(query.kernel) is None:
        raise Refused(404, "no kernel of that path is watched")
    options = service.config.options(query.kernel, "auto", Path())
    given = as_key(query.kernel, options.include_dirs, options.defines)
    hit = lookup.find(query.kernel, service.settings.cache, given=given)
    if hit is None:
        raise Refused(404, "the cache holds no winner for this hardware")
    return {"key": hit.key, "tier": hit.tier, "files": hit.files, "entry": msgspec.json.decode(hit.body)}


def _winners(service: Service, _: Any, query: RunsQuery) -> dict[str, Any]:
    if not Path(service.settings.cache).exists():
        return {"winners": []}
    rows: list[dict[str, Any]] = []
    with Store(Path(service.settings.cache)) as store:
        for row, entry in store.entries():
            if len(rows) == query.limit:
                break
            kept = {name: row[name] for name in ("key", "basis", "hardware", "arch", "driver", "created")}
            told: Mapping[str, Any] = entry.evidence if entry is not None else {}
            best: Any = told.get("best") or {}
            device = dict(told.get("device") or {})
            rows.append(kept | {
                "damaged": entry is None, "entry": told.get("entry", ""), "run": told.get("run", ""),
                "device": device.get("name", ""), "target": device.get("target", ""), "speedup": best.get("speedup"),
                "actions": best.get("actions", []), "files": sorted(entry.files) if entry is not None else [],
            })  # fmt: skip
    return {"winners": rows}


def _bundle(service: Service, path: SourcePath, _: Any) -> dict[str, Any]:
    """What another machine's lookups read through: this one's measured winners of a source, signed with its key."""
    found: list[Entry] = []
    if Path(service.settings.cache).exists():
        with Store(Path(service.settings.cache)) as store:
            found = [entry for row, entry in store.entries() if row["source"] == path.source and entry is not None]
    found = [entry for entry in found if entry.basis == "measured"]
    if not found:
        raise Refused(404, "the cache holds no measured winner for this source")
    from fsr.cache.bundle import packed  # the package cryptography is an extra
    from fsr.cache.signing import Keys

    told: dict[str, Any] = msgspec.json.decode(packed(found, Keys(service.settings.home)))
    return told


# ---------------------------------------------------------------- the service


def _status(service: Service, _: Any, __: Any) -> dict[str, Any]:
    return service.status()


def _health(service: Service, _: Any, __: Any) -> dict[str, Any]:
    wrong = service.health()
    if wrong:
        raise Refused(503, "; ".join(wrong))
    return {"healthy": True}


def _pause(service: Service, _: Any, __: Any) -> Done:
    before = service.paused
    service.pause()
    return Done(done=not before)


def _resume(service: Service, _: Any, __: Any) -> Done:
    before = service.paused
    service.resume()
    return Done(done=before)


def _reload(service: Service, _: Any, __: Any) -> Done:
    try:
        service.request_reload()
    except FsrError as fault:
        raise Refused(409, str(fault)) from None
    return Done(done=True)


def _stop(service: Service, _: Any, __: Any) -> Done:
    service.request_stop()
    return Done(done=True)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("GET", "/api/status", _status, "What the service watches, does and waits for."),
    Endpoint("GET", "/api/health", _health, "Whether all of its parts work.", refusals=(503,)),
    Endpoint("GET", "/api/jobs", _jobs, "The jobs, newest first.", given=JobsQuery, answer=Jobs),
    Endpoint("POST", "/api/jobs", _refine, "Queue a watched kernel before all others.", given=KernelQuery, answer=Job,
             refusals=(404, 409)),
    Endpoint("GET", "/api/jobs/{job}", _job, "One job.", JobPath, answer=Job, refusals=(404,)),
    Endpoint("POST", "/api/jobs/{job}/cancel", _cancel, "End a job.", JobPath, answer=Done, refusals=(404,)),
    Endpoint("POST", "/api/jobs/{job}/again", _again, "Queue an ended job's content once more.", JobPath, answer=Job,
             refusals=(404, 409)),
    Endpoint("GET", "/api/runs", _runs, "The runs, newest first.", given=RunsQuery),
    Endpoint("GET", "/api/runs/{run}", _run, "A run: how it went, its candidates, its winner.", RunPath,
             refusals=(404,)),
    Endpoint("GET", "/api/lookup", _lookup, "The winner of a watched kernel for this hardware.", given=KernelQuery,
             refusals=(404, 409)),
    Endpoint("GET", "/api/winners", _winners, "What the cache holds, newest first.", given=RunsQuery, refusals=(409,)),
    Endpoint("GET", "/api/winners/{source}", _bundle, "The measured winners of a kernel file, signed.", SourcePath,
             refusals=(404, 409)),
    Endpoint("POST", "/api/pause", _pause, "Begin nothing new and pause what runs.", answer=Done),
    Endpoint("POST", "/api/resume", _resume, "End a pause.", answer=Done),
    Endpoint("POST", "/api/reload", _reload, "Read the configuration anew.", answer=Done, refusals=(409,)),
    Endpoint("POST", "/api/stop", _stop, "End the service; runs are resumed when it starts again.", answer=Done),
)  # fmt: skip
