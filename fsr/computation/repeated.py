"""What an expression says several times, kept from the first time it is computed to the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fsr.computation.expression import Carried, Const, Expr, Fold, Number, Recurrence, children

Array = np.ndarray[Any, Any]


class Repeated:
    """The parts of one body; not those of what stands in a fold or a recurrence within it, which has dimensions of its
    own. Without a body nothing is kept."""

    def __init__(self, body: Expr | None = None) -> None:
        self._left: dict[Expr, int] = {}
        self._known: dict[Expr, Array] = {}
        if body is not None:
            self._left = {e: times for e, times in _occurrences(body).items() if times > 1}

    def of(self, e: Expr, make: Callable[[], Array]) -> Array:
        """The value of a part, made where it is not known; not kept once nobody will ask for it again: values may be
        millions."""
        if e not in self._left:
            return make()
        self._left[e] -= 1
        if e not in self._known:
            self._known[e] = make()
        return self._known[e] if self._left[e] > 0 else self._known.pop(e)


def _occurrences(body: Expr) -> Counter[Expr]:
    """How often each part is asked for when a part that comes again is not computed again."""
    found: Counter[Expr] = Counter()
    todo = [body]
    while todo:
        e = todo.pop()
        found[e] += 1
        if found[e] == 1 and not isinstance(e, Fold | Recurrence):
            todo += [part for part in children(e) if not isinstance(part, Const | Number | Carried)]
    return found
