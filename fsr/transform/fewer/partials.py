"""Partial results that blocks leave to a later launch: ``part[blockIdx.x] = sum``, a place in the plan's own memory for
each block, and a kernel that is told how many there are and folds them."""

from __future__ import annotations

from dataclasses import replace

from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Assign, Index, Member, Name, Stmt
from fsr.source.mapping import map_stmts
from fsr.transform.sizes import always, passed_text
from fsr.transform.target import Target


def partial_results(target: Target, blocks: str) -> frozenset[str]:
    """The parameters of a kernel behind which there is a place for each of so many blocks, of which nobody but later
    launches knows, and these are told their number. What they do with them is taken to be a fold; the tests have the
    last word."""
    plan = target.candidate.plan
    counts = {s.name: s.count for s in plan.scratch if not s.zeroed}
    later, earlier = plan.launches[target.position + 1 :], plan.launches[: target.position]
    found = set[str]()
    for parameter, buffer in target.passed.items():
        if buffer not in counts or any(buffer in launch.args for launch in earlier):
            continue
        readers = [launch for launch in later if buffer in launch.args]
        told = bool(readers) and all(_places(target, launch, blocks) for launch in readers)
        if told and always(target.contract, f"({counts[buffer]}) == ({blocks})"):
            found.add(parameter)
    return frozenset(found)


def by_block(target: Target, partial: frozenset[str], axis: str) -> Target:
    """The target whose blocks name their places by ``blockIdx`` itself, whatever variable holds it."""
    own = Member(Name("blockIdx"), axis)

    def place(s: Stmt) -> Stmt:
        match s:
            case Assign(Index(Name(name), index) as to) if name in partial and target.known.expand(index) == own:
                return replace(s, target=replace(to, index=own))
        return s

    body = map_stmts(target.kernel.body, place)
    return replace(target, kernel=replace(target.kernel, body=body))


def _places(target: Target, launch: Launch, blocks: str) -> list[int]:
    """Which arguments of a launch are always the number of blocks, and none by chance."""
    found = list[int]()
    for n, argument in enumerate(launch.args):
        value = passed_text(target.contract, argument)
        if value and always(target.contract, f"({value}) == ({blocks})"):
            found.append(n)
    return found


def told_of_fewer(candidate: Candidate, target: Target, buffers: frozenset[str], before: str, now: str) -> Candidate:
    """The candidate whose later launches are told another number of places in these buffers."""

    def told(launch: Launch) -> Launch:
        if not buffers & {a for a in launch.args if isinstance(a, str)}:
            return launch
        at = _places(target, launch, before)
        args = tuple(_scalar(target, a, now) if n in at else a for n, a in enumerate(launch.args))
        return replace(launch, args=args)

    launches = candidate.plan.launches
    changed = (*launches[: target.position + 1], *map(told, launches[target.position + 1 :]))
    return replace(candidate, plan=replace(candidate.plan, launches=changed))


def _scalar(target: Target, argument: object, value: str) -> ScalarArgument:
    if isinstance(argument, ScalarArgument):
        return replace(argument, value=value)
    own = next(a for a in target.contract.args if a.name == argument)
    return ScalarArgument(own.dtype, value)
