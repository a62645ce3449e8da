"""What tells one kernel from another to whoever learns from both: numbers in powers of two, and a few names.

No identifier and no text of the source is in it. What the kernel computes counts most where that is known (lifted);
the form of its source and what holds the original back are known of every kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import reduce

from fsr.computation.computation import Computation, Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op, Recurrence, children, valued
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.features.lifted import text_features
from fsr.features.schema import Features
from fsr.hardware.dtypes import numpy_dtype
from fsr.hardware.gpus import closest_target
from fsr.prediction.measured import judged
from fsr.records import Candidate, Outcome
from fsr.search.proposal import Rules

Traits = Mapping[str, float | str]
"""By name: a number (mostly the logarithm to base 2 of a count, to the half), or a word."""

SPECIAL = frozenset({"exp", "exp2", "log", "log2", "tanh", "erf", "sin", "cos", "pow", "sqrt", "rsqrt", "div"})
_MOST_LAUNCHES = 64


def traits(rules: Rules, original: Candidate, outcome: Outcome) -> Traits:
    """Of a kernel, from its original and what became of that; sizes are the first that are timed."""
    found: dict[str, float | str] = {"dtype": _main_dtype(rules.contract), **_form(rules, original, outcome.features)}
    if outcome.timing is not None:
        found["room"] = _log(outcome.timing.median_ns * 1e-9 * _bytes_per_s(rules.target) / _bytes(rules.contract))
    if rules.computation is not None:
        found |= _computed(rules.computation, rules.contract.timed_sizes()[0])
    return found


def _form(rules: Rules, original: Candidate, features: Features) -> dict[str, float | str]:
    text, found = text_features(rules.subject(original).kernels), dict[str, float | str]()
    launched = features.source
    found["launches"] = _log(min(len(original.plan.launches), _MOST_LAUNCHES))
    found["threads"] = _log((launched.grid_threads if launched is not None else None) or 1)
    found["block"] = _log((launched.threads_per_block if launched is not None else None) or 1)
    found["loop depth"] = float(text.loop_depth or 0)
    found["barriers"] = float(bool(text.barriers))
    found["atomics"] = float(bool(text.atomics))
    found["branches"] = float(bool(text.branches))
    causes = judged(features)
    found["held back by"] = causes[0].name if causes else ""
    return found


def _computed(computation: Computation, sizes: Mapping[str, int]) -> dict[str, float | str]:
    counts = [_Counted(s, computation, sizes) for s in computation.statements]
    main = max(counts, key=lambda c: c.operations)
    held = {b.name: _elements(b.shape, sizes) * numpy_dtype(b.dtype).itemsize for b in computation.buffers
            if not b.name.startswith("_")}  # fmt: skip
    moved, elements = sum(held.values()), sum(_elements(b.shape, sizes) for b in computation.buffers)
    return {
        "kinds": "+".join(sorted({s.kind for s in computation.statements})),
        "statements": _log(len(counts)),
        "dimensions": float(max(len(c.extents) for c in counts)),
        "points": _log(max(c.points for c in counts)),
        "folds": "+".join(sorted({name for c in counts for name in c.folds})),
        "fold dimensions": float(max(c.fold_dims for c in counts)),
        "fold length": _log(max(c.longest for c in counts)),
        "intensity": _log(1.0 + sum(c.operations for c in counts) / max(moved, 1)),
        "reuse": _log(max(sum(c.reads for c in counts) / max(elements, 1), 1.0)),
        "special functions": float(any(c.special for c in counts)),
        "gather": float(any(c.gathers for c in counts)),
        "recurrence": float(any(c.recurs for c in counts)),
        "contraction": float(main.contracts),
    }


class _Counted:
    """How much one statement does: ``operations`` and ``reads`` over its whole domain, and its forms."""

    def __init__(self, statement: Statement, computation: Computation, sizes: Mapping[str, int]) -> None:
        self.extents = {name: _extent(text, sizes) for name, text in statement.domain}
        self.points = math.prod(self.extents.values())
        self.operations = self.reads = float(self.points)
        self.longest, self.fold_dims = 1, 0
        self.folds: set[str] = set()
        self.special = self.gathers = self.recurs = self.contracts = False
        values = [v for v in (statement.value, *statement.place) if v is not None]
        for e, times in (one for value in values for one in self._walk(value, {**sizes, **self.extents}, 1)):
            self._count(e, times * self.points)

    def _walk(self, e: Expr, known: dict[str, int], times: int) -> Iterator[tuple[Expr, int]]:
        """Every expression beneath one, and how often it is computed for a point."""
        yield e, times
        if isinstance(e, Fold | Recurrence):
            dims = e.dims if isinstance(e, Fold) else ((e.dim, e.extent),)
            for name, extent in dims:
                known = {**known, name: max(1, _value(extent, known))}
                times *= known[name]
            self.longest = max(self.longest, math.prod(known[name] for name, _ in dims))
        for part in children(e):
            yield from self._walk(part, known, times)

    def _count(self, e: Expr, times: int) -> None:
        match e:
            case Load():
                self.reads += times
                self.gathers |= any(not isinstance(i, Number) for i in e.indices)
            case Fold(op, dims, body):
                self.folds.add(op)
                self.fold_dims = max(self.fold_dims, len(dims))
                loads = [a for a in body.args if isinstance(a, Load)] if isinstance(body, Op) else []
                self.contracts |= isinstance(body, Op) and body.name == "prod" and len(loads) > 1
            case Recurrence():
                self.recurs = True
            case Op(name, args):
                self.operations += times * max(len(args) - 1, 1)
                self.special |= name in SPECIAL


def _value(extent: Affine, known: Mapping[str, int]) -> int:
    return valued(extent, lambda name: known.get(name, 1))


def _extent(text: str, sizes: Mapping[str, int]) -> int:
    try:
        return max(1, evaluate_int(text, sizes))
    except ContractError:  # an extent that is data
        return 1


def _bytes(contract: Contract) -> int:
    """Of all buffers together, at least one."""
    sizes = contract.timed_sizes()[0]
    held = [math.prod(contract.shape(a, sizes)) * numpy_dtype(a.dtype).itemsize for a in contract.buffers()]
    return max(sum(held), 1)


def _bytes_per_s(target: str) -> float:
    return closest_target(target).memory_bytes_per_s


def _elements(shape: tuple[str, ...], sizes: Mapping[str, int]) -> int:
    return reduce(lambda product, text: product * _extent(text, sizes), shape, 1)


def _main_dtype(contract: Contract) -> str:
    """Of the largest buffer, the first of equals."""
    sizes = contract.timed_sizes()[0]
    largest = max(contract.buffers(), key=lambda a: math.prod(contract.shape(a, sizes)), default=None)
    return largest.dtype if largest is not None else ""


def _log(value: float) -> float:
    """To base 2, rounded to the half."""
    return round(2.0 * math.log2(max(value, 1.0))) / 2.0
