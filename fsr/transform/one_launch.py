"""One launch of a plan is changed as if it were all there is, whatever the plan computes as a whole.

A plan of stages that branch on what the stage before found tells nothing as a whole; a stage does. And a kernel that is
launched again and again may be changed where all its launches do the same: those that follow get what the first one
gets, with their buffers and numbers in the place of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.expressions import names
from fsr.records import Candidate, Launch, Plan, Scratch
from fsr.source.emit import emit_kernel
from fsr.transform.launch_alone import Alone, as_candidate, launches_alone, passable
from fsr.transform.protocol import Action, Move, Subject


@dataclass(frozen=True)
class OneLaunch:
    """``anew``: the actions that write a kernel from what it computes. Offered on kernels that are launched more than
    once, which they refuse in a plan: ``structural`` ones, and ``details``, which leave it one launch of the same
    buffers."""

    anew: tuple[Action, ...]
    structural: tuple[Action, ...]
    details: tuple[Action, ...]
    name: str = "one-launch"
    aims_at: frozenset[str] = frozenset(
        ["uncoalesced", "latency", "occupancy", "bandwidth", "compute", "atomics", "shared-conflicts", "instructions"]
    )

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The moves of each launch that can be taken for itself."""
        if subject.keep_launch:
            return
        for one in _groups(subject):
            own = _own(subject, one)
            for action in self._actions(one):
                fits = not one.often or action in self.details
                for move in action.moves(own):
                    if action in self.details and move.region == "plan":
                        continue  # flags: of all launches, and offered without this
                    if fits or _spliced(subject, one, action.apply(own, move)) is not None:
                        yield Move(self.name, f"kernel:{one.kernel}", (("as", move.name),), move.gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """See Action.apply."""
        kernel = move.region.removeprefix("kernel:")
        one = next(g for g in _groups(subject) if g.kernel == kernel)
        own, wanted = _own(subject, one), str(move.param("as"))
        action, inner = next((a, m) for a in self._actions(one) for m in a.moves(own) if m.name == wanted)
        made = action.apply(own, inner)
        plan = _spliced(subject, one, made)
        assert plan is not None
        return replace(made, plan=plan, actions=(*subject.candidate.actions, move.name))

    def _actions(self, one: Alone) -> tuple[Action, ...]:
        known = self.anew if one.computation is not None else ()
        return (*known, *self.structural, *self.details) if one.often else known


def _groups(subject: Subject) -> list[Alone]:
    """The launches of the plan as it is now, each with what it computes where nothing was done to it yet."""

    def think() -> list[Alone]:
        known = {one.kernel: one for one in subject.alone}
        found = []
        for one in launches_alone(subject.contract, subject.candidate.plan):
            form, before = subject.kernels.get(one.kernel), known.get(one.kernel)
            if form is None:
                continue
            same = before is not None and one.launches == before.launches and emit_kernel(form) == before.text
            found.append(before if same and before is not None else one)
        return found

    return subject.once("launches alone", think)


def _own(subject: Subject, one: Alone) -> Subject:
    """The launch as a subject of its own."""

    def think() -> Subject:
        candidate = as_candidate(one, subject.candidate)
        return replace(subject, candidate=candidate, contract=one.contract, computation=one.computation, alone=())

    return subject.once(("alone", one.kernel), think)


def _spliced(subject: Subject, one: Alone, made: Candidate) -> Plan | None:
    """The plan with what was made of one launch in the place of all that do the same; None where that is more than one
    launch and has to be repeated, or memory would have to be cleared in between."""
    plan, places = subject.candidate.plan, [x for x in subject.candidate.plan.launches if x in one.launches]
    again = len(places) > 1 or places[0].repeated
    if (places[0].repeated and len(made.plan.launches) > 1) or (again and any(s.zeroed for s in made.plan.scratch)):
        return None
    if any(names(s.count) & {name for _, name in one.told.names} for s in made.plan.scratch):
        return None
    called = _called(plan, made.plan.scratch)
    buffers, launches = passable(subject.contract, plan), list[Launch]()
    for x in plan.launches:
        if x not in one.launches:
            launches.append(x)
            continue
        passed = one.passed(x, buffers)
        for new in made.plan.launches:
            own = one.told.own(new, one.told.values(x))
            args = tuple((passed | called).get(a, a) if isinstance(a, str) else a for a in own.args)
            launches.append(replace(own, args=args, repeat=x.repeat))
    more = tuple(replace(s, name=called[s.name]) for s in made.plan.scratch)
    return replace(plan, launches=tuple(launches), scratch=(*plan.scratch, *more), flags=made.plan.flags)


def _called(plan: Plan, more: tuple[Scratch, ...]) -> dict[str, str]:
    """Names for new buffers that no other one of the plan has."""
    taken = {a for x in plan.launches for a in x.args if isinstance(a, str)} | {s.name for s in plan.scratch}
    found = dict[str, str]()
    for s in more:
        name = s.name
        while name in taken:
            name += "_"
        found[s.name] = name
        taken.add(name)
    return found
