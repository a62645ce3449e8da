"""A model as a proposer: it thinks in threads of its own and is never waited for while others have something to do.

What it writes is untrusted, judged like any candidate, and shares the evaluations by what it earns. Answers that are no
proposal are counted. It rests when a view of the search brought nothing, when its caps are reached, when it does not
answer, and when the best is as fast as moving its bytes allows.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any

from fsr.hardware.gpus import closest_target
from fsr.identity import candidate_hash
from fsr.llm import headroom
from fsr.llm.arms import COST_AN_EVALUATION, Arms
from fsr.llm.asking import Asking
from fsr.llm.attempts import Attempt, arms_of, possible
from fsr.llm.changes import Changes
from fsr.llm.code import normal_form
from fsr.llm.exchange import ModelFailure, Prompt
from fsr.llm.rebasing import Edit
from fsr.llm.roles import coder
from fsr.llm.scene import Scene
from fsr.llm.shown import shown
from fsr.llm.unusable import Unusable
from fsr.records import Json, Status
from fsr.search.proposal import Trial
from fsr.search.proposers.background import Background
from fsr.search.proposers.protocol import Suggestion, View
from fsr.search.sharing import PRICES

ROUNDS = 3  # of questions on one view of the search, as long as none brings a suggestion
ROUNDS_OF_GAINER = 8  # of a model that gained: its answers cost less than what others evaluate in its place
FAILURES = 6  # in a row, then the model is left alone
MOST_COST = 4.0
FAILURE_COST = 1.0  # evaluations charged for each candidate in a row that was not right: noise is soon asked rarely
LEAST_GAIN = 0.005  # in log speed-up: less is noise
PATIENCE = (
    3  # candidates in a row that may be wrong without a charge, of a model that gained nothing; more with each gain
)


def charged(cost: float, wrong: int, gains: int = 0) -> float:
    """What a suggestion is charged, in evaluations: its answers, and how many before it, in a row, were not right. A
    model that was seen to gain is known to be no noise, and waited for longer."""
    return min(cost + FAILURE_COST * max(0, wrong - PATIENCE * (1 + gains)), MOST_COST)


def _log_gain(before_ns: float | None, after_ns: float | None) -> float:
    """Of one time over another; 0 where it is none that a verdict could tell."""
    if not before_ns or not after_ns or before_ns == math.inf:
        return 0.0
    gain = math.log(before_ns / after_ns)
    return gain if gain >= LEAST_GAIN else 0.0


class ModelProposer(Background):
    """One model of one run.

    Args:
        asking: the model with its book.
        seed: of which parents are shown.
        won_elsewhere: lines on what won on kernels like this one.
        arms: which arms it has; by default all that its roles give it.
    """

    def __init__(
        self, asking: Asking, seed: int = 0, won_elsewhere: Sequence[str] = (), arms: Sequence[str] | None = None
    ) -> None:
        super().__init__(asking.spec.name, self._consider)
        self.asking, self.arms = asking, Arms()
        self.names = list(arms) if arms is not None else arms_of(asking.spec.roles)
        self.rests = ""  # why nothing more is asked
        self._seed, self._won_elsewhere = seed, tuple(won_elsewhere)
        self._guard = threading.Lock()  # of what follows, which the run's thread and this one's share
        self._forms: set[str] = set()
        self._seen_trials = 0
        self._used: set[str] = set()
        self._open: dict[int, str] = {}
        self._changes = Changes()
        self._edits: dict[str, Edit] = {}  # of suggestions that wait, by what they suggest
        self._best_ns = math.inf
        self._attempts = self._failures = self._wrong = self._gains = 0
        self._revived = self._shown = False
        self._pool = ThreadPoolExecutor(asking.spec.concurrency, thread_name_prefix=f"ask {self.name}")

    # ------------------------------------------------------------ the run's thread

    def suggest(self, view: View) -> Suggestion | None:
        """A suggestion that is ready, made on the best where that was found while it was thought of; or None."""
        if self._holds_back(view):
            return None
        found = super().suggest(view)
        return None if found is None else self._on_best(found, view)

    def _holds_back(self, view: View) -> bool:
        """Whether a model on this machine leaves its cores to the first candidate of others, which is under way."""
        first, self._shown = not self._shown, True
        alone = len(view.trials) < 2  # nothing but the original was told
        return self.asking.spec.local and alone and (first or view.asked > len(view.trials))

    def _on_best(self, found: Suggestion, view: View) -> Suggestion:
        edit = self._edits.pop(candidate_hash(found.candidate), None)
        seen, best = found.provenance.get("seen"), view.elites[0] if view.elites else None
        if not isinstance(seen, int) or edit is None or best is None or best not in view.trials[seen:]:
            return found
        merged = edit.suggested(best, view, dict(found.provenance))
        return found if merged is None or view.known(merged.candidate) else replace(merged, cost=found.cost)

    def asked(self, proposal: int, suggestion: Suggestion) -> None:
        """One of its suggestions goes to evaluation."""
        with self._guard:
            arm = self._open[proposal] = str(suggestion.provenance.get("arm", ""))
            answers = suggestion.provenance.get("answers")
            self._used |= {str(a) for a in answers} if isinstance(answers, list) else set()
            self.arms.proposed(arm)

    def told(self, trial: Trial, parent: Trial | None) -> None:
        """Learn which arm earns; the best is everybody's."""
        with self._guard:
            arm, time_ns = self._open.pop(trial.proposal.id, None), trial.time_ns
            gain = _log_gain(self._best_ns, time_ns)
            over = _log_gain(parent.time_ns, time_ns) if parent is not None else 0.0
            if arm is not None:
                right = trial.outcome.status >= Status.SLOW
                self._wrong = 0 if right else self._wrong + 1
                self._gains += gain > 0.0
                price = PRICES.get(trial.outcome.status, 1.0)
                self.arms.earned(arm, gain, over, right=right, price=price)
                self._changes.told(trial.proposal.provenance, right=right, gained=over > 0.0)
            if time_ns:
                self._best_ns = min(self._best_ns, time_ns)

    def close(self) -> None:
        """End the questions that are open, and the model's process."""
        self.asking.cancelled.set()
        super().close()
        if self.asking.provider is not None:
            self.asking.provider.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def report(self) -> dict[str, Json]:
        """What a result tells of the model: its bill, what its answers were, what each arm earned."""
        bill = self.asking.book.ledger.bill(self.name)
        with self._guard:
            arms: dict[str, Json] = {
                name: {"tried": a.tried, "proposed": a.proposed, "right": a.right, "gains": a.gains,
                       "earned": round(a.earned, 4), "cost": round(a.cost, 3)}
                for name, a in sorted(self.arms.arms.items())
            }  # fmt: skip
            gains = sum(a.gains for a in self.arms.arms.values())
        tokens = bill.tokens_in + bill.tokens_out
        return {
            "questions": bill.questions, "answers": bill.answers, "failures": bill.failures, "replayed": bill.replayed,
            "tokens_in": bill.tokens_in, "tokens_out": bill.tokens_out, "seconds": round(bill.seconds, 2),
            "dollars": None if bill.unpriced else round(bill.dollars, 6),
            "tokens_a_gain": round(tokens / gains) if gains else None,
            "dollars_a_gain": round(bill.dollars / gains, 6) if gains and not bill.unpriced else None,
            "refused": dict(sorted(self.asking.refused.items())), "arms": arms, "rests": self.rests or None,
        }  # fmt: skip

    # ------------------------------------------------------------ its own threads

    def _consider(self, view: View) -> Iterator[Suggestion]:
        """Ask until something is worth suggesting; nothing once it rests."""
        yield from self._leftovers(view)
        rounds = self._rounds(view)
        for _ in range(rounds):
            if self.rests or self.asking.cancelled.is_set():
                return
            found = 0
            for suggestion in self._round(view):
                found += 1
                yield suggestion
            if found:
                return

    def _rounds(self, view: View) -> int:
        """How much asking the headroom is worth: all, one round where little is left, none at the speed of light."""
        rules = view.space.rules
        left = headroom.headroom(view, headroom.bound_ns(rules.contract, closest_target(rules.target)))
        if left is not None and left <= headroom.ARRIVED:
            self.rests = f"the best takes {left:.2f} times what moving its bytes takes: nothing is left to gain"
            return 0
        if left is not None and left <= headroom.NEARLY:
            return 1
        return ROUNDS_OF_GAINER if self._gains else ROUNDS

    def _round(self, view: View) -> Iterator[Suggestion]:
        attempts = [self._attempt(view) for _ in range(self.asking.spec.concurrency)]
        if len(attempts) == 1:
            found = self._tried(attempts[0])
            if found is not None:
                yield found
            return
        try:
            futures = [self._pool.submit(self._tried, attempt) for attempt in attempts]
        except RuntimeError:  # the pool was closed: the run is over
            return
        for future in as_completed(futures):
            if future.cancelled():
                return
            found = future.result()
            if found is not None:
                yield found

    def _attempt(self, view: View) -> Attempt:
        with self._guard:
            self._attempts += 1
            names = possible(self.names, view, self.name)
            arm = self.arms.choose(names or self.names)
            self.arms.tried(arm)
            chance = random.Random(f"{self._seed}:{self.name}:{self._attempts}")
        return Attempt(arm, view, self.asking, chance, self._won_elsewhere)

    def _tried(self, attempt: Attempt) -> Suggestion | None:
        """What an attempt suggests; None, and counted, when it is nothing new."""
        try:
            suggestion = attempt.carried_out()
        except Unusable:
            self._failures = 0
            self._paid(attempt.arm)
            return None
        except ModelFailure as failure:
            self._failed(failure)
            return None
        self._failures = 0
        cost = self._paid(attempt.arm)
        with self._guard:
            repair = suggestion.kind == "repair"
            spent = attempt.edit is not None and self._changes.spent(suggestion.provenance, repair=repair)
        if spent or not self._novel(attempt.view, suggestion):
            self.asking.refuse(attempt.questions[-1], Unusable("duplicate"))
            return None
        told = {**suggestion.provenance, "seen": len(attempt.view.trials)}
        if attempt.edit is not None:
            self._edits[candidate_hash(suggestion.candidate)] = attempt.edit
        return replace(suggestion, cost=round(charged(cost, self._wrong, self._gains), 4), provenance=told)

    def _paid(self, arm: str) -> float:
        """Charge the arm; the cost in evaluations."""
        cost = self.asking.take_unpaid()
        with self._guard:
            self.arms.paid(arm, cost)
        return cost / COST_AN_EVALUATION

    def _failed(self, failure: ModelFailure) -> None:
        if failure.kind == "cancelled":
            return
        self._failures += 1
        if failure.final or self._failures >= FAILURES:
            self.rests = f"{failure.kind}: {failure.detail}"[:200]

    def _novel(self, view: View, suggestion: Suggestion) -> bool:
        """Whether the code, without comments and layout, was never proposed by anybody."""
        form = normal_form(suggestion.candidate)
        with self._guard:
            for trial in view.trials[self._seen_trials :]:
                self._forms.add(normal_form(trial.proposal.candidate))
            self._seen_trials = max(self._seen_trials, len(view.trials))
            if form in self._forms:
                return False
            self._forms.add(form)
        return True

    def _leftovers(self, view: View) -> Iterator[Suggestion]:
        """Code that an earlier life of the run paid for and did not come to evaluate."""
        if self._revived:
            return
        self._revived = True
        trials = {t.proposal.hash: t for t in view.trials}
        for prompt, answer, parent in self.asking.book.leftovers(set(self._used), self.name):
            if prompt.role not in ("coder", "repair", "crossover") or parent not in trials:
                continue
            name = prompt.hash(self.name)
            try:
                suggestion = self._leftover(view, trials[parent], prompt, answer.text)
            except Unusable as fault:
                self.asking.refuse(name, fault)
                continue
            if suggestion is not None and not view.known(suggestion.candidate) and self._novel(view, suggestion):
                yield suggestion

    def _leftover(self, view: View, trial: Trial, prompt: Prompt, answer: str) -> Suggestion | None:
        """What an answer to a question on a trial suggests: on that of its texts which the question shows."""
        texts = (shown(trial, view, whole=whole) for whole in (False, True))
        scenes = [(text, Scene(text.as_trial, view, self.asking.spec.context)) for text in texts]
        text, scene = next((pair for pair in scenes if pair[1].file in prompt.user), scenes[-1])
        candidate = coder.read(answer, prompt, scene)
        told: dict[str, Any] = {"arm": prompt.style, "answers": [prompt.hash(self.name)], "model": self.name}
        edit = Edit(text.base, candidate, prompt.role, self.name)
        return edit.suggested(text.onto, view, {**told, **text.noted()})
