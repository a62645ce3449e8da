"""Starting and continuing runs: what the first event of a log holds, and how a log becomes a search again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from fsr.cache.digest import text_digest
from fsr.errors import UsageError
from fsr.features.schema import Features
from fsr.identity import candidate_from_json, outcome_from_json, to_json
from fsr.records import Candidate, Json, Outcome, Status
from fsr.runs.kernel import Kernel, kernel_of
from fsr.runs.log import of_this_version, read_events
from fsr.runs.options import RefineOptions
from fsr.runs.state import RunState
from fsr.search.proposal import Proposal
from fsr.search.refinement import Refinement

PATHS = ("kernel", "output")
MOST_STEM = 160  # bytes of a kernel's name in its run's: file systems take 255 for one


@dataclass(frozen=True, slots=True)
class RunStart:
    """The first event of a run: everything that its proposals depend on. ``seconds``: how long it ran before its search
    began; when it was read back, in all its lives, without pauses and the time between two lives. ``learned``: digest
    of what it knows of earlier runs, which lies beside the log; '' for a run that knows nothing of others. ``in_step``:
    its original is the kernel as it was meant (:meth:`fsr.runs.kernel.Kernel.as_meant`)."""

    options: RefineOptions
    source: str
    contract: str
    given: Candidate | None
    known: tuple[str, ...]
    baseline: Outcome
    seconds: float = 0.0
    learned: str = ""
    in_step: bool = False

    @classmethod
    def new(
        cls, options: RefineOptions, kernel: Kernel, given: Candidate | None, known: tuple[str, ...], state: RunState
    ) -> RunStart:
        """The start of a new run whose original was just tested, and which knows nothing of earlier ones."""
        assert state.baseline is not None
        source = text_digest(kernel.file.path.read_bytes())
        contract, outcome = kernel.contract_digest(), state.baseline.outcome
        return cls(options, source, contract, given, known, outcome, state.elapsed_s, in_step=bool(kernel.in_step))

    @classmethod
    def read(cls, folder: Path) -> RunStart:
        """The start of a logged run. Raises UsageError when there is no such run or it never started its search."""
        events = list(read_events(folder))
        if not events or events[0]["kind"] != "start":
            raise UsageError(
                f"the run {folder.name!r} ended before its search began", where=str(folder),
                fix="start it anew: fsr refine KERNEL",
            )  # fmt: skip
        first = events[0]
        with of_this_version(folder):
            options: dict[str, Any] = {
                k: Path(v) if k in PATHS and v is not None else v for k, v in first["options"].items()
            }
            given = None if first["given"] is None else candidate_from_json(first["given"])
            return cls(
                RefineOptions(**options), first["source"], first["contract"], given, tuple(first["known"]),
                outcome_from_json(first["baseline"]), first["seconds"] + active_seconds(events),
                str(first.get("learned", "")), bool(first.get("in_step", False)),
            )  # fmt: skip

    def to_json(self) -> dict[str, Json]:
        """The fields of the event."""
        options: dict[str, Any] = asdict(self.options)
        options |= {k: None if options[k] is None else str(Path(options[k]).absolute()) for k in PATHS}
        options["include_dirs"] = [str(Path(folder).absolute()) for folder in self.options.include_dirs]
        return {
            "options": options, "source": self.source, "contract": self.contract,
            "given": None if self.given is None else to_json(self.given), "known": list(self.known),
            "baseline": to_json(self.baseline), "seconds": round(self.seconds, 3), "learned": self.learned,
            "in_step": self.in_step,
        }  # fmt: skip

    def kernel(self) -> Kernel:
        """The kernel that the run refines. Raises UsageError when its file or its contract changed since it began."""
        kernel = kernel_of(self.options)
        self.require_same(kernel)
        return (kernel.as_meant() or kernel) if self.in_step else kernel

    def require_same(self, kernel: Kernel) -> None:
        """Raises UsageError when the kernel file or its contract changed since the run began."""
        source = text_digest(kernel.file.path.read_bytes())
        if source != self.source or kernel.contract_digest() != self.contract:
            raise UsageError(
                "the kernel or its contract changed since this run began", where=str(kernel.file.path),
                expected="the file as it was", fix="start a new run: fsr refine KERNEL",
            )  # fmt: skip


def active_seconds(events: Sequence[Mapping[str, Any]]) -> float:
    """Seconds that a run was at work between its events: gaps before it was resumed, and pauses, do not count."""
    gaps = [max(0.0, b["at"] - a["at"]) for a, b in pairwise(events) if b["kind"] not in ("resume", "go on")]
    return float(sum(gaps))


def new_run_folder(runs: Path, kernel: Path) -> Path:
    """A folder name for a new run: kernel, date, and a little chance; it sorts by time."""
    stem = kernel.stem.encode("utf-8", "surrogateescape")[:MOST_STEM].decode("utf-8", "ignore")
    return runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{stem}-{secrets.token_hex(2)}"


def asked(proposal: Proposal) -> dict[str, Json]:
    """The fields of the event of a proposal: all that is needed to go on with it, whoever made it."""
    fields = to_json(proposal)
    assert isinstance(fields, dict)
    return fields


def proposal_of(event: Mapping[str, Any]) -> Proposal:
    """The inverse of :func:`asked`. Raises KeyError or TypeError for an event of another version."""
    return Proposal(
        event["id"], candidate_from_json(event["candidate"]), event["hash"], event["parent"], event["move"],
        event["origin"], event["proposer"], event["provenance"], event["untrusted"], event["cost"], event.get("worth"),
    )  # fmt: skip


def replay_into(refinement: Refinement, folder: Path, state: RunState) -> None:
    """Rebuild a search from its log, asking nobody; proposals that were never told are open afterwards.

    Raises StorageError when the log is of another version."""
    with of_this_version(folder):
        for event in read_events(folder):
            _replay(event, refinement, state)


def demoted(outcome: Outcome) -> Outcome:
    """What remains of a candidate that promotion refused."""
    return Outcome(min(outcome.status, Status.SLOW), "promotion", evidence=outcome.evidence)


def _replay(event: Mapping[str, Any], refinement: Refinement, state: RunState) -> None:
    match event["kind"]:
        case "ask":
            refinement.restore(proposal_of(event))
        case "enrich":
            refinement.enrich(event["id"], Features.from_json(event["features"]))
        case "settle":
            outcome = outcome_from_json(event["outcome"])
            refinement.settle(event["id"], outcome)
            state.settle(outcome)
        case "promote":
            outcome = outcome_from_json(event["outcome"])
            if outcome.status < Status.PROMOTED:
                refinement.demote(event["id"], demoted(outcome))
        case "tell":
            outcome = outcome_from_json(event["outcome"])
            refinement.tell(event["id"], outcome)
            if event["id"] != 0:
                state.count(outcome)
