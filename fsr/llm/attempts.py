"""One attempt of a model at a better candidate: which arm, which evidence, which roles one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fsr.identity import to_json
from fsr.llm import offers
from fsr.llm.asking import Asking
from fsr.llm.changes import Change
from fsr.llm.exchange import Prompt
from fsr.llm.rebasing import Edit
from fsr.llm.roles import chooser, coder, judge, macro
from fsr.llm.roles.directive import Directive
from fsr.llm.scene import Scene
from fsr.llm.shown import Shown, shown
from fsr.llm.unusable import Unusable
from fsr.records import Json
from fsr.search.proposal import Trial
from fsr.search.proposers.protocol import Suggestion, View
from fsr.transform.protocol import Action, Move

T = TypeVar("T")
CHOOSE, CROSS, REPAIR = "choose", "cross", "repair"
WRITTEN_SHARE = 0.9  # of the questions in which a model is shown what is written, without the moves made on it
STEPS = ("", "judge", "macro", "policy")  # who says what the Coder is to do; '' for the Coder itself


def arms_of(roles: Sequence[str]) -> list[str]:
    """All arms that a model with these roles has, independent of what there is to work on."""
    found = [CHOOSE] if "chooser" in roles else []
    if "coder" in roles:
        found += [",".join(filter(None, (who, style))) for style in coder.STYLES for who in STEPS
                  if not who or who == "policy" or who in roles]  # fmt: skip
    found += [CROSS] if "crossover" in roles else []
    found += [REPAIR] if "repair" in roles else []
    found += [f"judge,{REPAIR}"] if {"judge", "repair"} <= set(roles) else []
    return found


def possible(arms: Sequence[str], view: View, proposer: str) -> list[str]:
    """Those that have something to work on now."""
    broken = bool(offers.broken(view, proposer))
    other = len(view.elites) > 1
    return [a for a in arms if (broken or not a.endswith(REPAIR)) and (other or a != CROSS)]


@dataclass(slots=True)
class Attempt:
    """An attempt by an arm. Raises Unusable and ModelFailure from ``carried_out``. ``chance``: of its own."""

    arm: str
    view: View
    asking: Asking
    chance: random.Random
    won_elsewhere: tuple[str, ...] = ()
    questions: list[str] = field(default_factory=list)
    edit: Edit | None = None
    step: dict[str, Json] = field(default_factory=dict)

    def carried_out(self) -> Suggestion:
        """What it suggests."""
        *who, last = self.arm.split(",")
        by = who[0] if who else ""
        if last == CHOOSE:
            return self._choose()
        if last == REPAIR:
            return self._repair(judged=by == "judge")
        trial = offers.parent(self.view, self.chance)
        if last == CROSS:
            return self._cross(trial)
        text = shown(trial, self.view, whole=self.chance.random() >= WRITTEN_SHARE)
        scene = self._scene(text)
        step = self._step(by, scene)
        return self._code(text, "coder", lambda n: coder.prompt(scene, last, step, n))

    def _scene(self, text: Shown) -> Scene:
        return Scene(text.as_trial, self.view, self.asking.spec.context, self.won_elsewhere, text.moves)

    def _cross(self, trial: Trial) -> Suggestion:
        partner = offers.partner(self.view, trial)
        if partner is None:
            raise Unusable("duplicate", "there is one design only")
        text = shown(trial, self.view, whole=True)
        scene = self._scene(text)
        return self._code(text, "crossover", lambda n: coder.crossover_prompt(scene, partner, n))

    def _choose(self) -> Suggestion:
        trial = offers.parent(self.view, self.chance)
        brief = self.asking.spec.roles == ("chooser",)
        listed = offers.moves(self.view, trial)
        listed = chooser.kinds(listed) if brief else listed
        if not listed:
            raise Unusable("duplicate", "no move is left on this candidate")
        scene = self._scene(shown(trial, self.view, whole=True))

        def read(text: str, asked: Prompt) -> tuple[Action, Move]:
            return chooser.read(text, listed)

        asked = chooser.brief if brief else chooser.prompt
        action, move = self._ask(scene, lambda n: asked(scene, listed, n), read)
        candidate = self.view.space.applied(trial.proposal.candidate, action, move)
        if candidate is None or self.view.known(candidate):
            raise self._refused(Unusable("duplicate", move.name))
        # The action wrote its text, or what an untrusted parent had said already.
        told = self._provenance(move=to_json(move))
        return Suggestion(candidate, trial.proposal.id, move.name, "chooser", told, trial.proposal.untrusted)

    def _step(self, by: str, scene: Scene) -> Directive | None:
        if by == "judge":
            return self._ask(scene, lambda n: judge.prompt(scene, n), judge.read)
        if by == "macro":
            regions = offers.regions(self.view, scene.trial)
            return self._made(self._ask(scene, lambda n: macro.prompt(scene, regions, n), macro.read))
        if by == "policy":
            region = self.chance.choice(offers.regions(self.view, scene.trial))
            return self._made(macro.step(offers.step_of(self.view, scene.trial, self.chance), region))
        return None

    def _made(self, step: Directive) -> Directive:
        """Note the type of a step, which the next is chosen by."""
        self.step = {offers.STEP: step.said["type"]}
        return step

    def _repair(self, *, judged: bool) -> Suggestion:
        broken = offers.broken(self.view, self.asking.spec.name)
        if not broken:
            raise Unusable("duplicate", "nothing is left to mend")
        trial = broken[0]
        text = shown(trial, self.view, whole=False)
        scene = self._scene(text)
        found = self._ask(scene, lambda n: judge.failure_prompt(scene, n), judge.read) if judged else None
        told = self._code(text, "repair", lambda n: coder.repair_prompt(scene, "edit", found, n))
        more: dict[str, Json] = {offers.MENDS: trial.proposal.id, "rounds": offers.rounds(trial) + 1}
        return replace(told, provenance={**told.provenance, **more})

    def _code(self, text: Shown, kind: str, make: Callable[[int], Prompt]) -> Suggestion:
        scene = self._scene(text)
        candidate = self._ask(scene, make, lambda answer, asked: coder.read(answer, asked, scene))
        self.edit = Edit(text.base, candidate, kind, self.asking.spec.name)
        noted = {**text.noted(), **Change.between(text.base, candidate).noted(), **self.step}
        made = self.edit.suggested(text.onto, self.view, self._provenance(**noted))
        if made is None or self.view.known(made.candidate):
            raise self._refused(Unusable("duplicate"))
        return made

    def _ask(self, scene: Scene, make: Callable[[int], Prompt], read: Callable[[str, Prompt], T]) -> T:
        told, name, _ = self.asking.ask(make, read, scene.trial.proposal.hash)
        self.questions.append(name)
        return told

    def _refused(self, fault: Unusable) -> Unusable:
        self.asking.refuse(self.questions[-1], fault)
        return fault

    def _provenance(self, **more: Json) -> dict[str, Json]:
        return {"arm": self.arm, "answers": list(self.questions), "model": self.asking.spec.name, **more}
