"""What an action is: a deterministic rewrite with preconditions, offered at regions with parameters.

An action never guesses: where it cannot show that the result computes the same, it offers nothing. Results
are checked by tests all the same; an action whose results fail tests is a bug in the action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from fsr.computation.computation import Computation
from fsr.computation.order import order_shows
from fsr.contract.model import Contract
from fsr.hardware.gpus import Target, closest_target
from fsr.records import Candidate
from fsr.source.form import KernelForm
from fsr.transform.launch_alone import Alone

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Subject:
    """What an action looks at: a candidate, the parsed kernels of its plan by function name (templates by
    their bare name), and the contract. ``keep_launch``: grid, block and plan length must stay as they are.
    ``target``: architecture such as 'sm_90'. ``computation``: what the original computes; None: not known.
    ``alone``: launches of the original's plan of which each is known for itself."""

    candidate: Candidate
    kernels: Mapping[str, KernelForm]
    contract: Contract
    keep_launch: bool = False
    target: str = "sm_90"
    computation: Computation | None = None
    alone: tuple[Alone, ...] = ()
    _thoughts: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, what: object, think: Callable[[], _T]) -> _T:
        """What is thought of a subject, the first time that an action asks for it: most ask for the same."""
        if what not in self._thoughts:
            self._thoughts[what] = think()
        return self._thoughts[what]  # type: ignore[no-any-return]

    @property
    def gpu(self) -> Target:
        """The figures of the GPU that ``target`` names, or of the closest that is known."""
        return closest_target(self.target)

    @property
    def free(self) -> Computation | None:
        """What the original computes, where a kernel may be written from that alone: nothing was done yet, and no order
        has to be kept that it does not tell."""
        if self.computation is None or self.candidate.actions:
            return None
        return None if self.contract.tolerance.exact and order_shows(self.computation) else self.computation


@dataclass(frozen=True, slots=True)
class Move:
    """One applicable instance of an action: where and with what. ``gain`` is the action's own prior guess of
    the speed-up (1.0: none), used by the policy to order untried moves, never as a result."""

    action: str
    region: str  # stable: 'kernel', 'launch', 'loop:j', 'loop:j#2', 'param:x', 'plan'
    params: tuple[tuple[str, int | str], ...] = ()
    gain: float = field(default=1.0, compare=False)

    @property
    def name(self) -> str:
        """The stable name: ``vectorize@loop:j[width=4]``."""
        inner = ",".join(f"{k}={v}" for k, v in self.params)
        return f"{self.action}@{self.region}" + (f"[{inner}]" if inner else "")

    def param(self, key: str) -> int | str:
        """A parameter's value. Raises KeyError."""
        return dict(self.params)[key]


class Action(Protocol):
    """A family of moves. Stateless."""

    @property
    def name(self) -> str:
        """Short, stable, in the field's terms: 'row-per-block', 'vectorize', 'tile-contraction'."""

    @property
    def aims_at(self) -> frozenset[str]:
        """Bottlenecks it relieves, from fsr.prediction.bottleneck: 'uncoalesced', 'atomics', 'latency',
        'occupancy', 'bandwidth', 'compute', 'shared-conflicts', 'instructions', 'launch'."""

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Every instance whose preconditions hold, cheapest sensible parameters only; empty when none."""

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The rewritten candidate, with ``move.name`` appended to its actions. Only called with a move that
        ``moves`` offered for an equal subject."""
