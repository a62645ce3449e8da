"""``ask`` and ``tell``: a run driven from outside, by a coding agent or by hand, one candidate at a time."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fsr.app.checking import evaluated, promoted
from fsr.errors import UsageError
from fsr.evaluation.spec import PromoteRequest
from fsr.identity import to_json
from fsr.llm.code import file_of
from fsr.llm.code import whole as read_file
from fsr.llm.roles import coder
from fsr.llm.scene import Scene
from fsr.llm.unusable import Unusable
from fsr.records import Candidate, Json, Outcome, Status, VerdictKind
from fsr.runs.baseline import qualify
from fsr.runs.fleet import open_fleet
from fsr.runs.kernel import Kernel
from fsr.runs.log import EventLog, is_written
from fsr.runs.options import RefineOptions
from fsr.runs.resuming import RunStart, asked, demoted, replay_into
from fsr.runs.state import RunState
from fsr.search.proposal import Rules, Space, Trial
from fsr.search.proposers.protocol import Suggestion, View
from fsr.search.refinement import Refinement
from fsr.settings import Settings, read_settings
from fsr.transform.registry import all_actions

AGENT = "agent"
QUESTIONS = "questions.jsonl"
TOKENS = 65536  # of the evidence that an agent is shown, answer included


@dataclass(slots=True)
class OneGiven:
    """A proposer that suggests what an agent told, once."""

    suggestion: Suggestion | None
    name: str = AGENT
    thinking: bool = False

    def suggest(self, view: View) -> Suggestion | None:
        """The agent's candidate, unless it is known."""
        given, self.suggestion = self.suggestion, None
        return given if given is not None and not view.known(given.candidate) else None

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """Nothing to note."""

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """Nothing to learn."""

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as its folder holds it: everything needed to go on with it by hand."""

    folder: Path
    options: RefineOptions
    kernel: Kernel
    refinement: Refinement
    given: OneGiven

    @classmethod
    def read(cls, run: str, settings: Settings) -> Stored:
        """Raises UsageError when there is no such run, or its kernel has changed since."""
        folder = Path(settings.runs) / run
        start = RunStart.read(folder)
        kernel = start.kernel()
        rules, given = Rules(kernel.contract, start.options.keep_launch, start.options.target), OneGiven(None)
        refinement = Refinement(kernel.baseline, Space(rules, all_actions()), [given])
        replay_into(refinement, folder, RunState(run, kernel.contract.entry, start.options.budget_s))
        return cls(folder, start.options, kernel, refinement, given)


def ask(run: str, settings: Settings | None = None, style: str = "whole") -> dict[str, Json]:
    """Evidence on the fastest candidate of a run, ready for a prompt, and the id to tell an answer by."""
    stored = Stored.read(run, settings or read_settings())
    best = stored.refinement.archive.best
    assert best is not None
    scene = Scene(best, stored.refinement.view(), TOKENS)
    prompt = coder.prompt(scene, style)
    path = stored.folder / QUESTIONS
    number = len(path.read_text().splitlines()) + 1 if path.is_file() else 1
    question = {"id": number, "parent": best.proposal.id, "hash": best.proposal.hash, "at": round(time.time(), 3)}
    with path.open("a") as file:
        file.write(json.dumps(question) + "\n")
    return {
        "run": run, "id": number, "entry": stored.kernel.contract.entry, "system": prompt.system, "prompt": prompt.user,
        "file": file_of(best.proposal.candidate), "time_ns": best.time_ns,
        "tell": f"fsr tell {run} {number} candidate.cu",
    }  # fmt: skip


def tell(run: str, number: int, answer: str, settings: Settings | None = None) -> dict[str, Json]:
    """Evaluate what was made of a question: the candidate file's text, launch lines on top. Returns its verdict and
    evidence; what is right and faster than the best is judged in the paired final against the original. The run's log
    holds it afterwards, so that ``--resume`` goes on from there. Raises UsageError for an unknown id."""
    settings = settings or read_settings()
    stored = Stored.read(run, settings)
    if is_written(stored.folder):
        raise UsageError(
            f"the run {run!r} is going on", expected="a run that nobody is working on", where=str(stored.folder),
            fix=f"fsr runs stop {run}, then tell again",
        )  # fmt: skip
    parent = _parent(stored, number)
    try:
        candidate = _candidate(answer, parent, stored)
    except Unusable as fault:
        return {"run": run, "id": number, "status": "refused", "kind": fault.kind, "detail": fault.detail}
    stored.given.suggestion = Suggestion(
        candidate, parent.proposal.id, candidate.actions[-1], AGENT, {"question": number}, untrusted=True
    )
    with EventLog(stored.folder) as log:
        proposal = stored.refinement.ask()
        if proposal is None:
            return {"run": run, "id": number, "status": "refused", "kind": "duplicate", "detail": "it is known already"}
        outcome, final = _judged(stored, candidate)
        best = stored.refinement.archive.best
        log.append("ask", **asked(proposal))
        log.append("tell", id=proposal.id, outcome=to_json(outcome))
        stored.refinement.tell(proposal.id, outcome)
        if final is not None:
            log.append("promote", id=proposal.id, outcome=to_json(final))
            if final.status < Status.PROMOTED:
                stored.refinement.demote(proposal.id, demoted(final))
    return _told(stored, run, number, proposal.id, best, outcome, final)


def _parent(stored: Stored, number: int) -> Trial:
    path = stored.folder / QUESTIONS
    questions = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    found = next((q for q in questions if q["id"] == number), None)
    trial = next((t for t in stored.refinement.trials if found and t.proposal.id == found["parent"]), None)
    if trial is None:
        raise UsageError(
            f"nobody asked question {number} of this run", expected=f"1 to {len(questions)}" if questions else "",
            where=str(stored.folder), fix=f"fsr ask {stored.folder.name}",
        )  # fmt: skip
    return trial


def _candidate(answer: str, parent: Trial, stored: Stored) -> Candidate:
    base = parent.proposal.candidate
    found = read_file(answer if "```" in answer else f"```cuda\n{answer}\n```", base, stored.kernel.contract)
    return replace(found, actions=(*base.actions, f"{AGENT}@{stored.kernel.contract.entry}"))


def _judged(stored: Stored, candidate: Candidate) -> tuple[Outcome, Outcome | None]:
    """What the search's stages say, and the final where it is right and faster than the original."""
    with open_fleet(stored.options, 1, single=True, modules=stored.kernel.modules) as fleet:
        spec, workers = fleet.spec(stored.kernel, stored.options), fleet.workers
        report = qualify(workers, spec, stored.kernel, lambda: None)
        binaries, outcome = evaluated(workers, spec, candidate, untrusted=True)
        first, now = report.outcome.timing, outcome.timing
        if binaries is None or outcome.status < Status.CORRECT or first is None or now is None:
            return outcome, None
        if now.median_ns >= first.median_ns:
            return outcome, None
        request = PromoteRequest(spec, candidate, binaries, stored.options.budget_s, untrusted=True, own_tested=True)
        return outcome, promoted(workers, request)


def _told(
    stored: Stored, run: str, number: int, proposal: int, best: Trial | None, *outcomes: Outcome | None
) -> dict[str, Json]:
    outcome, final = outcomes
    assert outcome is not None
    timing = outcome.timing
    verdict: Any = final.evidence.get("verdict") if final is not None else None
    gained = bool(verdict) and verdict["kind"] == VerdictKind.FASTER.value and final is not None
    return {
        "run": run, "id": number, "proposal": proposal,
        "status": (final or outcome).status.name.lower(), "stage": (final or outcome).stage,
        "tests": {"cases": outcome.cases, "passed": outcome.passed},
        "time_ns": timing.median_ns if timing is not None else None,
        "basis": timing.basis.value if timing is not None else None,
        "best_before_ns": best.time_ns if best is not None else None,
        "gain": gained and final is not None and final.status is Status.PROMOTED, "verdict": verdict,
        "evidence": dict((final or outcome).evidence), "features": outcome.features.to_json(),
    }  # fmt: skip
