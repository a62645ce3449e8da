"""Rows: folds over the contiguous dimension of what stands in a row, and what is made of them for each element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fsr.computation.computation import Statement
from fsr.computation.expression import (
    PLACES,
    Const,
    Expr,
    Fold,
    Load,
    Op,
    children,
    distinct,
    names_in,
    rebuilt,
    renamed,
    walk,
)
from fsr.computation.printing import affine_text
from fsr.computation.types import CASTS, type_of
from fsr.transform.computed.attention_form import uncast
from fsr.transform.computed.folding import best, checked, extent, folds_in
from fsr.transform.computed.parts import Domain, name_of, number_of, value_of
from fsr.transform.computed.scene import Scene, along, loads_in, plain, surely
from fsr.transform.plain.c_text import NotPlain

ELEMENT = "item"  # the dimension along a row, in all that belongs to one: no name that people give a size


@dataclass(frozen=True)
class RowFold:
    """A fold over a row. ``value``: what stands for its result elsewhere: a read of the value between statements, or
    the fold itself. ``body``: over the dimension ``k``."""

    value: Expr
    fold: Fold
    body: Expr


@dataclass(frozen=True)
class Rows:
    """``dims``: those that number the rows; ``length``: the elements of a row, as a size expression; ``phases``: folds
    that can be made in one walk over the row, one walk after the other; ``results``: one a row; ``elements``: one an
    element, over the dimension ``k``."""

    scene: Scene
    dims: tuple[tuple[str, str], ...]
    length: str
    phases: tuple[tuple[RowFold, ...], ...]
    results: tuple[Statement, ...]
    elements: tuple[tuple[Load, Expr], ...]  # what is written, as a read of it, and its value

    @property
    def walks(self) -> tuple[tuple[Expr, ...], ...]:
        """What each walk over the row reckons, the one that writes last."""
        found = [tuple(f.body for f in phase) for phase in self.phases]
        return (*found, tuple(v for _, v in self.elements)) if self.elements else tuple(found)


def rows(scene: Scene) -> Rows | None:
    """The part as rows; None where it is none."""
    part = scene.part
    domain = part.made[0].domain if part.made else min((s.domain for s in part.outputs), key=len)
    if any(s.domain != domain for s in part.made) or part.domain[: len(domain)] != domain or not domain:
        return None
    more = part.domain[len(domain) :]
    if len(more) > 1 or any(not own_place(s, (domain, part.domain)) for s in part.outputs):
        return None
    found = gathered(scene, domain, more)
    return found if found is not None and _contiguous(found) and in_place(found) else None


def gathered(scene: Scene, domain: Domain, more: Domain) -> Rows | None:
    """What the part makes of lines of elements, which ``domain`` numbers and ``more`` goes along, wherever they lie in
    memory; None where it makes something else."""
    part = scene.part
    if not scene.folds_stay_inside:
        return None
    single = [s for s in part.outputs if s.domain == domain]
    many = [s for s in part.outputs if s.domain != domain]
    try:
        folds = [RowFold(_written(s, scene), *_checked(value_of(s))) for s in part.made]
        # Two results may need the same fold, as one that is kept for a later stage does.
        folds += [RowFold(f, *_checked(f)) for f in dict.fromkeys(f for s in single for f in folds_in(value_of(s)))]
    except NotPlain:
        return None
    length = _common(scene, [*(x for _, x in more), *(_length(f.fold, part.sizes) for f in folds)])
    if not folds or length is None or any(folds_in(value_of(s)) for s in many):
        return None
    elements = tuple((_row_load(_written(s, scene), more), _value(s, more, scene)) for s in many)
    return Rows(scene, domain, length, _phases(folds), tuple(single), elements)


def own_place(s: Statement, domains: tuple[Domain, ...]) -> bool:
    """Whether a point of one of the domains writes the element of the same number; of a row, in a segment of its own,
    which a number tells."""
    place = [i for i in s.place if s.domain != domains[0] or number_of(i) is None]
    return s.domain in domains and [name_of(i) for i in place] == [n for n, _ in s.domain]


def in_place(found: Rows) -> bool:
    """Whether of what is written, an element of a row is read by the walks over that very row and at its own place,
    and a value of a row where that value is made: all reads of a row come before its writes."""
    written = [*(w.buffer for w, _ in found.elements), *(s.target for s in found.results)]
    twice = {name for name in written if written.count(name) > 1}
    walked = loads_in(e for walk_ in found.walks for e in walk_)
    if any(x.buffer in twice for x in [*walked, *loads_in([e for _, e in found.elements])]):
        return False
    if any(x.buffer in twice for x in loads_in(map(value_of, found.results))):
        return False
    own = {w.buffer: w for w, _ in found.elements}
    single = {s.target: s.place for s in found.results}
    if any(x.buffer in single or (x.buffer in own and x.indices != own[x.buffer].indices) for x in walked):
        return False
    last = loads_in(value_of(s) for s in found.results)
    return not any(
        (x.buffer in own and ELEMENT not in names_in(x)) or (x.buffer in single and x.indices != single[x.buffer])
        for x in last
    )


def _written(s: Statement, scene: Scene) -> Load:
    return Load(s.target, s.place, next(b.dtype for b in scene.part.buffers if b.name == s.target))


def _checked(value: Expr) -> tuple[Fold, Expr]:
    if not isinstance(value, Fold):
        raise NotPlain("a value between statements that is no fold")
    if value.op in PLACES and isinstance(value.body, Op):
        fold = replace(value, body=replace(value.body, args=(best(value)[0], value.body.args[1])))
    else:
        fold = checked(value)
    dim = fold.dims[0][0]
    return fold, renamed(fold.body, lambda n: ELEMENT if n == dim else n)


def _along_row(e: Expr, more: tuple[tuple[str, str], ...]) -> Expr:
    return renamed(e, lambda n: ELEMENT if more and n == more[0][0] else n)


def _row_load(e: Load, more: tuple[tuple[str, str], ...]) -> Load:
    return replace(e, indices=tuple(_along_row(i, more) for i in e.indices))


def _value(s: Statement, more: tuple[tuple[str, str], ...], scene: Scene) -> Expr:
    """An element's value; what is divided by something that a row shares is multiplied by its inverse, which is
    reckoned once, unless results must stay bit for bit."""
    value = _along_row(value_of(s), more)
    return value if scene.target.exact else _inverses(value)


def _inverses(e: Expr) -> Expr:
    if isinstance(e, Op) and e.name.startswith("exp"):
        return e  # a large argument's last bit shows in the power
    e = rebuilt(e, tuple(map(_inverses, children(e))))
    if (
        isinstance(e, Op)
        and e.name == "div"
        and type_of(e) in ("float32", "float64")
        and type_of(e.args[1]) == type_of(e)
    ):
        over, under = e.args
        if ELEMENT in names_in(over) and ELEMENT not in names_in(under) and not isinstance(under, Const):
            return Op("prod", (over, Op("inv", (under,))))
    return e


def shared_by_row(e: Expr) -> list[Expr]:
    """The largest operations in an expression that are the same for all elements of a row."""
    if isinstance(e, Op) and ELEMENT not in names_in(e):
        return [e]
    return [x for part in children(e) for x in shared_by_row(part)]


def _length(fold: Fold, sizes: Sequence[str]) -> str | None:
    over = extent(fold)
    several = over.terms and over.constant >= 0 and all(k > 0 and n in sizes for n, k in over.terms)
    return affine_text(over) if several or not over.terms else None


def _common(scene: Scene, lengths: Sequence[str | None]) -> str | None:
    """The one length that all are at any sizes, however it is written (``256 * n`` and ``256*n``); else None."""
    first = lengths[0] if lengths else None
    same = all(x is not None and scene.same(first or "", x) for x in lengths)
    return first if same else None


def _phases(folds: list[RowFold]) -> tuple[tuple[RowFold, ...], ...]:
    level: dict[str, int] = {}
    found: dict[int, list[RowFold]] = {}
    for f in folds:
        needs = [level[e.buffer] + 1 for e in walk(f.body) if isinstance(e, Load) and e.buffer in level]
        own = max(needs, default=0)
        if isinstance(f.value, Load):
            level[f.value.buffer] = own
        found.setdefault(own, []).append(f)
    return tuple(tuple(found[n]) for n in sorted(found))


def carried_on(phases: Sequence[Sequence[RowFold]]) -> bool:
    """Whether the second walk sums powers of e less the maximum that the first one finds, so that one walk does for
    both."""
    if len(phases) < 2 or len(phases[0]) != 1 or phases[0][0].fold.op != "max":
        return False
    top = phases[0][0].value
    return all(f.fold.op == "sum" and _less(f.body, top) for f in phases[1])


def _less(body: Expr, top: Expr) -> bool:
    """Whether a value is e to something less ``top``, converted perhaps."""
    power = body.args[0] if isinstance(body, Op) and body.name in CASTS else body
    if not isinstance(power, Op) or power.name != "exp" or not isinstance(power.args[0], Op):
        return False
    inner = power.args[0]
    rest = [a for a in inner.args if a != Op("neg", (top,))]
    return inner.name == "sum" and len(rest) == len(inner.args) - 1 and not any(top in distinct(a) for a in rest)


def reads(exprs: Iterable[Expr]) -> list[Load]:
    """The reads of memory; values between statements are none."""
    return [x for x in loads_in(exprs) if not x.buffer.startswith("_")]


def _contiguous(found: Rows) -> bool:
    """Whether a row's reads go along it, and some are of the row's own elements."""
    every = reads(e for walked in found.walks for e in walked)
    if any(plain(x) and any(ELEMENT in names_in(i) for i in x.indices[:-1]) for x in every):
        return False
    known = {n for n, _ in found.dims} | set(found.scene.part.sizes) | {ELEMENT}
    if any(names_in(e) - known for walked in found.walks for e in walked):
        return False
    sure = surely(e for walked in found.walks for e in walked)
    if any(
        along(x, ELEMENT) and x not in sure and not found.scene.same(found.scene.shape(x.buffer)[-1], found.length)
        for x in every
    ):
        return False  # packs are read whatever a condition says
    last = found.dims[-1][0]
    return any(along(x, ELEMENT) and last in names_in(x) for x in every)


def streams(found: Rows) -> list[Load]:
    """Reads along the row."""
    return [x for x in reads(e for walked in found.walks for e in walked) if along(x, ELEMENT)]


def kept_between(found: Rows) -> list[Load]:
    """Reads of the row's own elements that several walks need."""
    counts = {x: sum(x in reads(walked) for walked in found.walks) for x in streams(found)}
    return [x for x, n in counts.items() if n > 1 and found.dims[-1][0] in names_in(x)]


def in_its_place(found: Rows, phase: Sequence[RowFold], stay: Sequence[Load]) -> Expr | None:
    """The values of a row's last fold, where they are all that is still needed of what stays of it, one stream, and of
    its type: powers that their sum is divided out of. None elsewhere."""
    if phase is not found.phases[-1] or len(phase) != 1 or len(stay) != 1:
        return None
    body, values = uncast(phase[0].body), [v for _, v in found.elements]
    used = not isinstance(body, Load) and any(body == e for v in values for e in distinct(v))
    left = any(stay[0] in beneath(v, body) for v in values)
    return body if used and not left and type_of(body) == stay[0].dtype else None


def beneath(e: Expr, without: Expr) -> set[Expr]:
    """All that stands in an expression, other than in one of its parts."""
    if e == without:
        return set()
    found: set[Expr] = {e}
    for part in children(e):
        found |= beneath(part, without)
    return found


def leaves(e: Expr, held: set[Expr]) -> list[Expr]:
    """What is read for an expression, but for what is held."""
    if e in held:
        return []
    if isinstance(e, Load):
        return [e]
    return [x for part in children(e) for x in leaves(part, held)]
