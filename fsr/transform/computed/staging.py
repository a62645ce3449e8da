"""What no kernel makes in one go, in stages: values between folds that are kept in scratch memory.

A fold within another's body (scores within a softmax) is kept; so is what a fold multiplies with a read that has a
dimension of its own (a softmax that weighs values): what is left is a contraction. Folds whose length depends on a
dimension go over all of it first, what lies beyond changing nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.canonical import DIMS, canonical, ordered
from fsr.computation.computation import KEPT, Buffer, Computation, Statement
from fsr.computation.expression import (
    Affine,
    Case,
    Const,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    affine,
    children,
    distinct,
    names_in,
    rebuilt,
    renamed,
)  # fmt: skip
from fsr.computation.printing import affine_text
from fsr.computation.simplify import unpeeled
from fsr.computation.types import type_of
from fsr.transform.computed.attention_form import attention, uncast
from fsr.transform.computed.folding import NEUTRAL, folds_in
from fsr.transform.computed.parts import put_in, value_of

Dims = Mapping[str, str]  # in order, with their extents


def staged(c: Computation) -> Iterator[Computation]:
    """The computation in stages: with as little kept as leaves folds that a kernel each can make (attention as it is,
    and cut too), with every fold kept that is not a row's own, and with all of them, those in others too (a mean in a
    variance: a row may be folded by several blocks then). Buffers that are kept have names beginning with ``$``."""
    if not any(folds_in(value_of(s)) for s in c.statements):  # nothing that could be kept
        yield _Stages(c, every=False, cut=False, nested=False).done()
        return
    for every, cut in ((False, False), (False, True), (True, True)):
        yield _Stages(c, every, cut, nested=False).done()
    if any(_nests(f) for s in c.statements for f in folds_in(put_in(value_of(s), _made(c)))):
        yield _Stages(c, every=True, cut=True, nested=True).done()


def _made(c: Computation) -> dict[str, Statement]:
    """The values between statements."""
    return {s.target: s for s in c.statements if s.target.startswith("_")}


def _nests(fold: Fold) -> bool:
    """Whether a fold needs another one's result for all its values."""
    own = {n for n, _ in fold.dims}
    return any(not own & names_in(x) or _nests(x) for x in folds_in(fold.body))


@dataclass
class _Stages:
    c: Computation
    every: bool  # whether all folds are kept
    cut: bool  # whether attention is cut like all else
    nested: bool  # whether folds are kept that every value of another one needs
    statements: list[Statement] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)

    def done(self) -> Computation:
        made = _made(self.c)
        last = []
        for s in self.c.statements:
            if s.target not in made:
                whole = unpeeled(put_in(value_of(s), made))
                stays = not self.cut and attention(s, whole, self.c.sizes) is not None
                last.append(replace(s, value=whole if stays else self._outer(whole, s), kind="map"))
        own = tuple(b for b in self.c.buffers if b.name not in made)
        return canonical(replace(self.c, buffers=(*own, *self.buffers), statements=(*self.statements, *last)))

    def _outer(self, whole: Expr, s: Statement) -> Expr:
        """What an output is made of: folds over other dimensions than the first ones of its own are kept."""
        if not folds_in(whole):
            return whole
        domain = dict(s.domain)
        e = self._inner(whole, domain)
        if isinstance(e, Fold):
            return e
        if self.nested:
            return self._all_kept(e, domain)
        owns = {x: [n for n in domain if n in names_in(x)] for x in folds_in(e)}
        mixed = len({len(own) for own in owns.values()}) > 1

        def kept(x: Expr) -> Expr:
            if not isinstance(x, Fold):
                return rebuilt(x, tuple(map(kept, children(x))))
            begins, every = owns[x] == list(domain)[: len(owns[x])], len(owns[x]) == len(domain)
            return self._kept(x, domain) if not begins or (mixed and every) or (self.every and not every) else x

        return kept(e)

    def _all_kept(self, e: Expr, around: Dims) -> Expr:
        if isinstance(e, Fold):
            return self._kept(e, around)
        return rebuilt(e, tuple(self._all_kept(p, around) for p in children(e)))

    def _inner(self, e: Expr, around: Dims) -> Expr:
        """The expression with what stands within folds kept."""
        if not isinstance(e, Fold):
            return rebuilt(e, tuple(self._inner(p, around) for p in children(e)))
        e = self._even(e, around)
        inside = {**around, **{n: affine_text(x) for n, x in e.dims}}
        body = self._inner(e.body, inside)
        own = {n for n, _ in e.dims}

        def kept(x: Expr) -> Expr:
            if isinstance(x, Fold) and (self.nested or own & names_in(x)):
                return self._kept(x, inside)
            return rebuilt(x, tuple(map(kept, children(x))))

        return replace(e, body=self._weights(kept(body), own, inside) if e.op == "sum" else kept(body))

    def _even(self, e: Fold, around: Dims) -> Fold:
        """A fold as long as it is anywhere, what lies beyond its length somewhere changing nothing."""
        dims, body = [], e.body
        for name, extent in e.dims:
            longest = _longest(extent, around)
            if longest is None or e.op not in NEUTRAL or not _reads_inside(body, name, longest, self.c):
                dims.append((name, extent))
                continue
            beyond = Const(NEUTRAL[e.op], type_of(body))
            body = Case(affine(name), replace(extent, constant=extent.constant - 1), body, beyond)
            dims.append((name, affine(longest)))
        return replace(e, dims=tuple(dims), body=body)

    def _weights(self, body: Expr, own: set[str], inside: Dims) -> Expr:
        """A product of a read and something reckoned, each with a dimension of its own, with the latter kept."""
        value = body.yes if isinstance(body, Case) else body
        if isinstance(body, Case) and body.no != Const(0.0, type_of(body.yes)):
            return body
        if not isinstance(value, Op) or value.name != "prod":
            return body
        reads = [f for f in value.args if isinstance(uncast(f), Load)]
        rest = [f for f in value.args if f not in reads]
        if len(reads) != 1 or not rest or not own <= names_in(reads[0]):
            return body
        weight: Expr = rest[0] if len(rest) == 1 else replace(value, args=tuple(rest))
        if isinstance(body, Case):
            weight = Case(body.left, body.right, weight, body.no)
        mine, others = names_in(weight) & set(inside), names_in(reads[0]) & set(inside)
        if not own <= mine or mine <= others or others <= mine or type_of(weight) != "float32":
            return body
        return Op("prod", (reads[0], self._kept(weight, inside)))

    def _kept(self, e: Expr, around: Dims) -> Load:
        """A read of the buffer in which an expression is kept."""
        free = [n for n in around if n in names_in(e)]
        ways = [(*order, *free[-1:]) for order in itertools.permutations(free[:-1])]
        keys = [(self._told(e, own), *(around[n] for n in own)) for own in ways]
        at = next((n for n, key in enumerate(keys) if key in self.known), 0)  # kept before, in some order?
        own, key = ways[at], keys[at]
        value, shape = self._told(e, own), tuple(around[n] for n in own) or ("1",)
        if key not in self.known:
            self.known[key] = name = f"{KEPT}stage{len(self.known) + 1}"
            self.buffers.append(Buffer(name, type_of(value), shape))
            domain = tuple(zip(DIMS, shape, strict=False))
            place = tuple(Number(affine(d), "int64") for d, _ in domain)
            self.statements.append(Statement("map", name, domain, value, place))
        indices = tuple(Number(affine(n), "int64") for n in own) or (Number(Affine(()), "int64"),)
        return Load(self.known[key], indices, type_of(value))

    def _told(self, e: Expr, own: Sequence[str]) -> Expr:
        """The expression over dimensions named by their places."""
        called = dict(zip(own, DIMS, strict=False))
        return ordered(renamed(e, lambda n: called.get(n, n)))


def _longest(extent: Affine, around: Dims) -> str | None:
    """How far ``j + 1`` or less goes at most: as far as j does; None for what ends at sizes, or otherwise."""
    match extent:
        case Affine(((name, 1),), constant) if name in around and constant <= 1:
            return around[name]
    return None


def _reads_inside(body: Expr, name: str, longest: str, c: Computation) -> bool:
    """Whether all reads are within their buffers as far as that."""
    shapes = {b.name: b.shape for b in c.buffers}
    for x in distinct(body):
        if not isinstance(x, Load):
            continue
        for index, extent in zip(x.indices, shapes.get(x.buffer, ()), strict=False):
            if name in names_in(index) and (index != Number(affine(name), "int64") or extent != longest):
                return False
    return longest.isidentifier()
