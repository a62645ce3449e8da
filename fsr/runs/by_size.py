"""What is faster at some sizes alone becomes a candidate that is used there alone, the original elsewhere."""

from __future__ import annotations

from operator import itemgetter
from typing import cast

from fsr.evaluation.spec import Binaries, WhereRequest
from fsr.identity import to_json
from fsr.records import Json, Outcome, Status
from fsr.runs.context import RunContext
from fsr.runs.resuming import asked
from fsr.search.configurations import speedups, told
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import Suggestion
from fsr.search.refinement import Refinement
from fsr.transform.by_size import by_size, is_split

WHERE_S, WHERE_TIMEOUT_S = 4.0, 60.0
WORTH = 1.05  # times as fast as one that is faster everywhere


def glanced_at(refinement: Refinement) -> Trial | None:
    """The fastest of those that the search gave up as slower at other sizes, if it is clearly faster than all that are
    right."""
    best = min((t.time_ns for t in refinement.trials if t.time_ns is not None), default=None)
    found = [(t.measured_ns, t) for t in refinement.trials if t.outcome.slower_elsewhere and t.measured_ns is not None]
    own, fastest = min(found, key=itemgetter(0), default=(0.0, None))
    return fastest if best is not None and own * WORTH < best else None


def used_where_faster(
    context: RunContext, refinement: Refinement, trial: Trial, binaries: Binaries, outcome: Outcome
) -> Trial | None:
    """A trial's candidate where it is faster, and the original elsewhere, as one more trial that is owed its tests;
    ``outcome``: that of the refusal. None where no condition on the sizes tells, or the time is up."""
    proposal = trial.proposal
    if is_split(proposal.candidate):
        return None
    held_out, timed = (
        tuple(cast(list[dict[str, Json]], outcome.evidence.get(kind) or [])) for kind in ("held_out", "timed")
    )
    if not timed:
        timed = told(context.spec.contract, speedups(refinement.trials[0], trial))
    request = WhereRequest(context.spec, proposal.candidate, binaries, held_out, WHERE_S, timed)
    done, _ = context.awaited("device", "where:where_task", lambda _: request, WHERE_TIMEOUT_S)
    found = done.result
    if not isinstance(found, Outcome) or found.status is not Status.CORRECT:
        return None
    condition = str(found.evidence["where"])
    candidate = by_size(proposal.candidate, context.spec.baseline, condition)
    if candidate is None:
        return None
    suggestion = Suggestion(candidate, proposal.id, candidate.actions[-1], "action", untrusted=proposal.untrusted)
    added = refinement.add(suggestion)
    if added is None:
        return None
    screened = Outcome(
        Status.SCREENED, "screening", 1, 1, trial.outcome.timing, features=trial.outcome.features,
        evidence=found.evidence,
    )  # fmt: skip
    context.log.append("ask", **asked(added))
    context.log.append("tell", id=added.id, outcome=to_json(screened))
    context.state.count(screened)
    return refinement.tell(added.id, screened)
