"""Results that take the place of what other points read, kept in a buffer of their own first and put there afterwards:
a step in time of several launches, each for one direction, is one launch and a copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import Fold, Load, Number, affine, distinct
from fsr.transform.computed.parts import value_of, written_out


def set_aside(c: Computation) -> Iterator[Computation]:
    """The computation with such results set aside; none where no result is read by another point than its own."""
    whole = written_out(c)
    if whole is None or any(s.target.startswith(KEPT) for s in whole.statements):
        return
    read = [s for s in whole.statements if any(_reads_others(other, s) for other in whole.statements)]
    aside = [s for s in read if s.domain and s.place]
    if not aside:
        return
    kept, buffers, last = list[Statement](), list[Buffer](), list[Statement]()
    for n, s in enumerate(aside, 1):
        name, dtype = f"{KEPT}aside{n}", c.buffer(s.target).dtype
        at = tuple(Number(affine(dim), "int64") for dim, _ in s.domain)
        buffers.append(Buffer(name, dtype, tuple(extent for _, extent in s.domain)))
        kept.append(replace(s, target=name, place=at))
        last.append(Statement("map", s.target, s.domain, Load(name, at, dtype), s.place))
    others = [s for s in whole.statements if s not in aside]
    yield replace(whole, buffers=(*whole.buffers, *buffers), statements=(*kept, *others, *last))


def _reads_others(reader: Statement, s: Statement) -> bool:
    """Whether a statement reads what another one writes, elsewhere than at the place that the same point writes."""
    value = value_of(reader)
    folded = {e for f in distinct(value) if isinstance(f, Fold) for e in distinct(f)}
    reads: Sequence[Load] = [e for e in distinct(value) if isinstance(e, Load) and e.buffer == s.target]
    return any(e in folded or e.indices != s.place or reader.domain != s.domain for e in reads)
