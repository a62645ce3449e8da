"""delinearize: threads that take their number apart by / and % get the axes of a launch that the parts are.

The inverse of how frameworks write kernels over tensors: one number a thread, of which it tells a row, a column, a
channel by divisions that no hardware does well. The divisions go; what threads along an axis have in common becomes
visible to whatever works along axes of a launch. (The term is that of V. Maslov, "Delinearization: an efficient way to
break multiloop dependence equations", PLDI 1992.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from fsr.analysis.conditions import negation
from fsr.analysis.threads import guard_of
from fsr.records import Candidate, Launch
from fsr.source.form import Binary, Declare, Expr, Name, Stmt, conjunction
from fsr.source.walk import Block, fresh, identifiers, integer
from fsr.transform.axes.number_parts import ONE, Extent, Part, TakenApart
from fsr.transform.axes.once_through import once_through
from fsr.transform.instantiated import kernels_of
from fsr.transform.jam.action import JamThreads
from fsr.transform.launch.pointwise import Pointwise, id_expression, pointwise
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, always, largest, largest_timed
from fsr.transform.target import Target, target_of, targets

_THREADS = 256  # of a block, where the kernel's is an odd one
_ROWS = (1, 2, 4, 8)  # of a block
_OFFERED = 3  # shapes
_JAMMED = 2
_LIMIT = 65535  # blocks along y and z
_NARROW = 16  # threads along x that are worth an axis
_GAIN, _EACH = 1.1, 0.04  # more for each division


@dataclass(frozen=True)
class _Axes:
    """``point``: the kernel; ``ends``: the extents of axes x, and y where there is a z, as products from x on;
    ``counts``: how many threads there are along each axis, as size expressions; ``parts``: what the number is taken
    apart to."""

    point: Pointwise
    ends: tuple[Extent, ...]
    counts: tuple[str, ...]
    parts: frozenset[Part]


class Delinearize:
    """The same ids, told by two or three axes of the launch."""

    name = "delinearize"
    aims_at = frozenset({"instructions", "compute", "latency", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The block shapes that waste the fewest threads, for each kernel whose threads have one number that it takes
        apart, and with several threads along another axis done by one where they have something in common (as
        jam-threads does); none with keep_launch."""
        for target in () if subject.keep_launch else targets(subject):
            found = subject.once((self.name, target.region), partial(_axes, target))
            if found is None:
                continue
            shapes, gain = _shapes(found), _GAIN + _EACH * min(len(found.parts), 5)
            for rank, (x, y) in enumerate(shapes):
                yield Move(self.name, target.region, (("x", x), ("y", y)), gain - 0.02 * rank)
            if shapes:
                jams = subject.once((self.name, "jams", target.region), partial(_jams, subject, found, shapes[0]))
                for jam in jams[:_JAMMED]:
                    params = (("x", shapes[0][0]), ("y", shapes[0][1]), *jam.params)
                    yield Move(self.name, target.region, params, gain * jam.gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with a launch over the axes."""
        target = target_of(subject, move)
        found, params = _axes(target), dict(move.params)
        assert found is not None
        made = _over_axes(found, move, int(params["x"]), int(params["y"]))
        if "factor" not in params:
            return made
        jam = Move(JamThreads.name, move.region, (("factor", params["factor"]), ("along", params["along"])))
        return replace(JamThreads().apply(_as_subject(subject, made), jam), actions=made.actions)


def _over_axes(found: _Axes, move: Move, x: int, y: int) -> Candidate:
    target = found.point.target
    kernel = replace(target.kernel, body=_body(found), launch_bounds=(str(x * y),))
    return rewritten(target, move, kernel, launch=lambda one: _relaunched(one, found, x, y))


def _jams(subject: Subject, found: _Axes, shape: tuple[int, int]) -> list[Move]:
    """What jam-threads offers along other axes than x, once there are some."""
    region = found.point.target.region
    made = _over_axes(found, Move(Delinearize.name, region), *shape)
    offered = (m for m in JamThreads().moves(_as_subject(subject, made)) if m.region == region)
    return [m for m in offered if m.param("along") != "x"]


def _as_subject(subject: Subject, candidate: Candidate) -> Subject:
    return replace(subject, candidate=candidate, kernels=kernels_of(candidate.source))


def _relaunched(launch: Launch, found: _Axes, x: int, y: int) -> Launch:
    counts = (*found.counts, "1")[:3]
    grid = (f"ceil_div({counts[0]}, {x})", f"ceil_div({counts[1]}, {y})" if y > 1 else counts[1], counts[2])
    return replace(launch, grid=grid, block=(str(x), str(y), "1"))


def _axes(target: Target) -> _Axes | None:
    """How a kernel's threads are taken apart; None where they have more than one number, or are not."""
    point = pointwise(once_through(target))
    if point is None or set(point.ids) != {"x"}:
        return None
    target = point.target
    parts = set[Part]()
    _apart(point, lambda _: None, parts)
    ends = sorted({end for p in parts for end in (p.low, p.high) if end not in (None, ONE)}, key=_size)
    if not ends or any(b.over(a) is None for a, b in pairwise(ends)):
        return None
    sizes = [_text(target, end) for end in ends]
    bound = point.bounds["x"][1]
    if None in sizes or not always(target.contract, f"({bound}) % ({sizes[-1]}) == 0"):
        return None
    while ends and (largest_timed(target.contract, str(sizes[0])) or 0) < _NARROW:
        ends, sizes = ends[1:], sizes[1:]
    if not ends:
        return None
    ends, sizes = ends[:2], sizes[:2]
    extents = [_text(target, own) for own in _extents(tuple(ends))]
    if None in extents:
        return None
    counts = (*map(str, extents), f"({bound}) // ({sizes[-1]})")
    reached = largest(target.contract, f"({bound}) + {_ROWS[-1]} * ({sizes[0]})")
    if reached is None or reached > INT_LIMIT:
        return None
    return _Axes(point, tuple(ends), counts, frozenset(parts))


def _apart(point: Pointwise, told: Callable[[Part], Expr | None], parts: set[Part]) -> Block:
    """The kernel's statements with parts of its threads' number as they are told; all parts into ``parts``."""
    target = point.target
    apart = TakenApart(point.ids["x"].name, lambda e: _extent(target, e), target.known.types, told, parts)
    return apart.rewritten(target.kernel.body)


def _size(end: Extent) -> tuple[int, int]:
    return len(end.names), end.number


def _extent(target: Target, e: Expr) -> Extent | None:
    """A divisor as a product of numbers and of parameters that nothing changes."""
    e = target.known.expand(e)
    value = integer(e)
    if value is None and isinstance(e, Name):
        value = target.constants.get(e.text)
    if value is not None:
        return Extent(value) if value > 0 else None
    match e:
        case Binary("*", left, right):
            a, b = _extent(target, left), _extent(target, right)
            return None if a is None or b is None else a * b
        case Name(text) if text not in target.known.changed and target.size_text(e) is not None:
            return Extent(1, (text,)) if any(p.name == text for p in target.kernel.params) else None
    return None


def _text(target: Target, end: Extent) -> str | None:
    """An extent as a size expression that is never 0."""
    text = target.size_text(end.expr)
    return text if text is not None and always(target.contract, f"({text}) > 0") else None


def _shapes(found: _Axes) -> list[tuple[int, int]]:
    """Shapes of blocks, those that leave the fewest threads without work first."""
    contract = found.point.target.contract
    across, down = (largest_timed(contract, c) or 1 for c in found.counts[:2])
    most = [largest(contract, c) for c in found.counts]
    if len(most) > 2 and (most[2] is None or most[2] > _LIMIT):
        return []

    def used(shape: tuple[int, int]) -> float:
        x, y = shape
        return across / (-(-across // x) * x) * down / (-(-down // y) * y)

    threads = found.point.target.block
    every = threads[0] if threads is not None and 32 <= threads[0] <= 1024 and threads[0] % 32 == 0 else _THREADS
    shapes = [(every // y, y) for y in _ROWS if every // y >= 32]
    fits = [s for s in shapes if most[1] is not None and -(-most[1] // s[1]) <= _LIMIT]
    return sorted(fits, key=lambda s: -round(used(s), 1))[:_OFFERED]


# ---------------------------------------------------------------- text


def _body(found: _Axes) -> Block:
    """The kernel's statements with an id an axis."""
    target, own = found.point.target, found.point.ids["x"]
    taken = set(target.names)
    names = list[str]()
    for axis in "xyz"[: len(found.counts)]:
        names.append(fresh(f"{own.name}_{axis}", taken))
        taken.add(names[-1])
    told = _apart(found.point, lambda part: _told(part, found, names), set())
    type_ = found.point.type_of("x")
    ids = tuple(Declare(f"const {type_}", n, id_expression(a)) for n, a in zip(names, "xyz", strict=False))
    tests = [Binary("<", Name(n), extent.expr) for n, extent in zip(names, _extents(found.ends), strict=False)]
    if len(found.counts) == 2:  # the last block along y may reach further than the number does
        tests.append(Binary("<", Name(own.name), found.point.bounds["x"][0]))
    inside = conjunction(tests)
    assert inside is not None
    body, guarded = list[Stmt](), False
    for s in told:
        if isinstance(s, Declare) and s.name == own.name:
            body += [*ids, replace(s, init=_told(Part(), found, names))]
            continue
        guard = None if guarded else guard_of(s, frozenset((own.name,)))
        if guard is not None:
            guarded, s = True, replace(guard.statement, test=negation(inside) if guard.returns else inside)
        body.append(s)
    rest = tuple(s for s in body if not (isinstance(s, Declare) and s.name == own.name))
    return rest if own.name not in identifiers(rest) else tuple(body)


def _extents(ends: tuple[Extent, ...]) -> list[Extent]:
    """How many threads there are along x, and along y where there is a z."""
    before, extents = ONE, list[Extent]()
    for end in ends:
        own = end.over(before)
        assert own is not None
        extents.append(own)
        before = end
    return extents


def _told(part: Part, found: _Axes, names: list[str]) -> Expr:
    """A part by the ids of the axes."""
    ends = (*found.ends, None)
    at = max(i for i, low in enumerate((ONE, *found.ends)) if part.low.over(low) is not None)
    begin, end = (ONE, *found.ends)[at], ends[at]
    whole: Expr = Name(names[at])
    skipped = part.low.over(begin)
    assert skipped is not None
    if skipped != ONE:
        whole = Binary("/", whole, skipped.expr)
    if part.high == end:
        return whole
    if end is None or (part.high is not None and end.over(part.high) is not None):
        inner = part.high.over(part.low)  # type: ignore[union-attr]
        assert inner is not None
        return Binary("%", whole, inner.expr)
    further = end.over(part.low)
    assert further is not None
    return Binary("+", Binary("*", _told(Part(end, part.high), found, names), further.expr), whole)
