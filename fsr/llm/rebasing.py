"""An edit that was made on one candidate, made on another: a merge of three texts, line by line.

A model thinks while others are evaluated, so that what it changes is often no longer the best when its answer comes.
Two edits at different places are then joined in one evaluation, and no model has to be asked for it. The rule is that
of ``diff3`` (Khanna, Kunal and Pierce 2007): a change applies where its lines, and their neighbours, are the same in
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from fsr.records import Candidate
from fsr.search.proposal import Trial


def carried(changed: Candidate, parent: int, onto: Trial, trials: Iterable[Trial]) -> Candidate | None:
    """``onto`` with what ``changed`` changes of the trial ``parent``, or of the right one that a line of repairs began
    with; None where that cannot be."""
    known = {t.proposal.id: t for t in trials}
    base = known.get(parent)
    while base is not None and base.proposal.id and base.time_ns is None:
        base = known.get(base.proposal.parent or 0)
    return None if base is None else rebased(changed, base.proposal.candidate, onto.proposal.candidate)


def rebased(changed: Candidate, base: Candidate, onto: Candidate) -> Candidate | None:
    """``onto`` with what ``changed`` changes of ``base``; None where the two touch the same lines, or both the plan."""
    plan = onto.plan if changed.plan == base.plan else changed.plan
    if changed.plan != base.plan != onto.plan:
        return None
    texts = [candidate.source.split("\n") for candidate in (base, changed, onto)]
    lines = _merged(*texts)
    return None if lines is None else Candidate("\n".join(lines), plan, onto.actions, onto.language)


def _merged(base: Sequence[str], changed: Sequence[str], onto: Sequence[str]) -> list[str] | None:
    kept = [block for block in _matcher(base, onto).get_matching_blocks() if block.size]
    merged = list(onto)
    for tag, first, end, start, stop in reversed(_matcher(base, changed).get_opcodes()):
        if tag == "equal":
            continue
        least, most = max(first - 1, 0), min(end + 1, len(base))  # with a neighbour on each side
        same = [block for block in kept if block.a <= least and most <= block.a + block.size]
        if not same:
            return None
        moved = same[0].b - same[0].a
        merged[first + moved : end + moved] = changed[start:stop]
    return merged


def _matcher(one: Sequence[str], other: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, one, other, autojunk=False)
