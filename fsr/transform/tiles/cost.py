"""About what a turn of a loop costs a thread, and how much of that goes where it does several threads' work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.source.form import Assign, Binary, Call, Cast, Expr, For, Index, Name, Ternary
from fsr.source.macros import macros
from fsr.source.parse import parse_device_functions
from fsr.source.walk import Block, blocks_of, exprs_of, subexprs
from fsr.transform.jam.terms import weight_of
from fsr.transform.target import Target
from fsr.transform.tiles.form import Tiled

_GLOBAL, _UNCOALESCED, _SHARED = 4.0, 12.0, 1.5  # a load, in instructions of a warp
_FILLED = 8.0  # an element of a tile, from memory
_TESTS = 2.0  # around a part, which then loads for itself
_FEW_TURNS = 4  # of a loop within of which nothing is known
_SECTOR = 32  # bytes
_DEPTH = 3  # of functions that call functions
_CHEAP = frozenset(["fabs", "abs", "fmin", "fmax", "min", "max", "fma", "sqrt", "rsqrt", "__popc", "__half2float"])
_MOST_TEXT = 768  # instructions of turns written out


@dataclass(frozen=True)
class Cost:
    """``work``: instructions of a turn but for its loads; ``loads``: by axis, of the lines that threads along the other
    one have in common, and their price now; ``wary``: whether each part of a thread is under tests in the loop;
    ``block``: extents."""

    work: float
    loads: Mapping[str, tuple[int, float]]
    wary: bool
    block: Mapping[str, int]

    def speedup(self, factors: Mapping[str, int]) -> float:
        """Of as many threads in one, by instructions."""
        other = {"x": "y", "y": "x"}
        before = self.work + sum(price for _, price in self.loads.values())
        shared = {axis: 1 if self.wary else factors[other[axis]] for axis in self.loads}
        after = self.work + sum(_SHARED * n / shared[axis] for axis, (n, _) in self.loads.items())
        filling = (n / (self.block[other[axis]] * factors[other[axis]]) for axis, (n, _) in self.loads.items())
        return before / (after + _FILLED * sum(filling) + (_TESTS if self.wary else 0.0))

    def unrolled(self, parts: int, turns: int) -> int:
        """How many turns may be written out for so many parts."""
        text = max(self.work * parts, 1.0)
        return next((n for n in (8, 4, 2) if n <= turns and n * text <= _MOST_TEXT), 1)


def cost_of(found: Tiled) -> Cost:
    """Of a turn of a kernel's loop."""
    loads = dict[str, tuple[int, float]]()
    for tile in found.reads.tiles:
        apart = tile.first.coefficient("threadIdx.x")
        far = tile.axis == "x" and apart is not None and not abs(apart.value or _SECTOR) * tile.bytes < _SECTOR
        price = _UNCOALESCED if far else _GLOBAL
        count, whole = loads.get(tile.axis, (0, 0.0))
        loads[tile.axis] = count + tile.width, whole + price * tile.width
    extents = dict(zip("xy", found.target.block or (1, 1), strict=False))
    spared = found.reads.places | found.steady.keys() | found.common.keys()
    return Cost(2.0 + _work(found.target, found.loop.body, (spared, _DEPTH)), loads, found.wary, extents)


_Around = tuple[frozenset[Expr], int]  # what is counted elsewhere, and how deep functions are looked into


def _work(target: Target, body: Block, around: _Around) -> float:
    total = 0.0
    for s in body:
        each = sum(_of(target, e, around) for e in exprs_of(s)) + float(isinstance(s, Assign) and s.op != "=")
        inner = sum(_work(target, block, around) for block in blocks_of(s))
        if isinstance(s, For):
            start, bound = target.poly(s.start).value, target.poly(s.bound).value
            turns = _FEW_TURNS if start is None or bound is None else max(bound - start, 1)
            each, inner = 0.0, inner * turns
        total += each + inner
    return total


def _of(target: Target, e: Expr, around: _Around) -> float:
    spared, depth = around
    if e in spared:
        return 0.0
    own = float(isinstance(e, Binary | Ternary | Cast))
    if isinstance(e, Binary):
        own = max(own, float(weight_of(e)))
    elif isinstance(e, Call):
        own = _called(target, e, depth)
    return own + sum(_of(target, x, around) for x in _parts(e))


def _called(target: Target, call: Call, depth: int) -> float:
    """Of what is called, its arguments aside."""
    name = call.callee.text.split("::")[-1] if isinstance(call.callee, Name) else ""
    form = parse_device_functions(target.source).get(name) if depth else None
    if form is not None:
        return _work(replace(target, kernel=form), form.body, (frozenset(), depth - 1))
    cheap = name in _CHEAP or name.removesuffix("f") in _CHEAP or any(m.name == name for m in macros(target.source))
    return 1.0 if cheap else float(weight_of(call))


def _parts(e: Expr) -> Iterator[Expr]:
    if not isinstance(e, Index):  # the place of what is read is told by the loop
        yield from (e.args if isinstance(e, Call) else subexprs(e))
