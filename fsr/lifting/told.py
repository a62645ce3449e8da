"""What a graph of terms tells, made anew in another normal form where the first one hides it."""

from __future__ import annotations

from collections.abc import Callable

from fsr.computation.computation import Computation
from fsr.computation.expression import written_length
from fsr.lifting.graph import Graph
from fsr.lifting.refused import Hopeless, Refused
from fsr.lifting.vanished import Vanished


def told_with(make: Callable[[Graph], Computation], graphs: dict[int, Graph], algebra: int) -> Computation:
    """What ``make`` tells of the graph of an algebra, which another may take the place of. Raises Refused."""
    found, why = None, None
    try:
        found = make(graphs[algebra])
    except Vanished:
        graphs[algebra] = Graph(algebra, apart=True)
        return make(graphs[algebra])
    except Hopeless:
        raise
    except Refused as refused:
        why = refused
    if graphs[algebra].annulled:  # of a tile's border, or the first of places that are factors
        before, graphs[algebra] = graphs[algebra], Graph(algebra, annul=True)
        try:
            other = make(graphs[algebra])
        except Refused:
            graphs[algebra] = before
        else:
            if found is None or _length(other) < _length(found):
                return other
            graphs[algebra] = before
    if found is None:
        assert why is not None
        raise why
    return found


def _length(c: Computation) -> int:
    """Terms of all its statements."""
    return sum(written_length(s.value) for s in c.statements if s.value is not None)
