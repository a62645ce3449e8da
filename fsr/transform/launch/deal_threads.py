"""deal-threads: the threads of a launch over several axes, numbered along another axis first, so that neighbours of a
warp take neighbouring elements.

A grid over atoms and their neighbours whose threads run along the atoms reads every list of neighbours across. Where
threads do not cooperate, it does not matter which of them share a warp: they are numbered through, the axis along which
memory runs first, and each tells the ids that it had from its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Binary, Comment, Declare, Expr, If, Literal, Member, Name, Param, Stmt
from fsr.source.walk import fresh
from fsr.transform.launch.block_shape import SwapIds
from fsr.transform.launch.contiguous import contiguous
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.told_ids import Ids, as_told, ids_in, with_ids
from fsr.transform.placement import launched_along
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target, target_of, targets

_THREADS = 256
_MOST = 2**31 - 1
_GAIN = 2.5
_RECORD = 4  # elements that a thread takes of neighbouring records, at most
_TYPE = "unsigned int"
_BUILTINS = ("threadIdx", "blockIdx", "blockDim", "gridDim")


@dataclass(frozen=True)
class _Axis:
    """An axis of a launch: blocks as a size expression, threads of a block along it, and the number of threads along
    all of it, in the kernel."""

    name: str
    grid: str
    block: int
    count: Expr

    @property
    def moves(self) -> bool:
        """Whether there is more than one thread along it."""
        return (self.grid, self.block) != ("1", 1)

    def of(self, number: Expr) -> Ids:
        """What the kernel's ids and extents along the axis are, told by a thread's number along it."""
        wide = Literal(f"{self.block}u")
        one, alone = self.grid == "1", self.block == 1
        return {
            ("threadIdx", self.name): Literal("0u") if alone else number if one else Binary("%", number, wide),
            ("blockIdx", self.name): Literal("0u") if one else number if alone else Binary("/", number, wide),
            ("blockDim", self.name): wide,
            ("gridDim", self.name): Literal(f"{self.grid}u") if self.grid.isdigit() else Binary("/", self.count, wide),
        }


class DealThreads:
    """The same threads with the ids that they had, those along another axis beside each other."""

    name = "deal-threads"
    aims_at = frozenset({"uncoalesced", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move an order of the axes that begins with one along which more is read and written side by side than along
        x; none with keep_launch, and none where swap-ids says the same in fewer words."""
        for target in () if subject.keep_launch else map(as_told, targets(subject)):
            axes = None if cooperates(target) else _axes(target)
            moving = [a.name for a in axes or () if a.moves]
            orders = list(_orders(target, moving)) if len(moving) > 1 else []
            if orders and all(m.region != target.region for m in SwapIds().moves(subject)):
                for rank, order in enumerate(orders):
                    yield Move(self.name, target.region, (("order", order),), gain=_GAIN - 0.1 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with its threads dealt anew."""
        target = as_told(target_of(subject, move))
        axes = _axes(target)
        assert axes is not None
        ordered = [next(a for a in axes if a.name == name) for name in str(move.param("order"))]
        kernel, named = target.kernel, _Names(set(target.names))
        lines, told = _told(ordered, named)
        for axis in axes:
            told |= {} if axis.moves else axis.of(Literal("0u"))
        number = Binary("+", Binary("*", Member(Name("blockIdx"), "x"), Literal(f"{_THREADS}u")),
                        Member(Name("threadIdx"), "x"))  # fmt: skip
        counted = [Param(_TYPE, a.count.text) for a in axes if isinstance(a.count, Name)]
        given = tuple(ScalarArgument("uint32", launched_along(target.launch, a.name)) for a in axes
                      if isinstance(a.count, Name))  # fmt: skip
        every = _product([a.count for a in axes if a.moves])
        body: tuple[Stmt, ...] = (
            Comment(f"// threads by number, {' before '.join(a.name for a in ordered)}"),
            Declare(f"const {_TYPE}", named.number, number),
            If(Binary("<", Name(named.number), every), (*lines, *with_ids(kernel.body, told))),
        )
        form = replace(kernel, body=body, params=(*kernel.params, *counted), launch_bounds=(str(_THREADS),))
        return rewritten(target, move, form, launch=lambda one: _relaunched(one, given))


class _Names:
    """Names that are free in a kernel, each given once."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.number = self.free("thread_number")

    def free(self, name: str) -> str:
        """One that nothing has."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found


def _axes(target: Target) -> list[_Axis] | None:
    """All three axes; None where a block's extent is not known, there are more threads than are counted, or ids are
    asked for by other than their parts."""
    if any(name not in ("x", "y", "z") for base, name in ids_in(target.kernel.body) if base in _BUILTINS):
        return None
    if target.block is None:
        return None
    found, names = list[_Axis](), _Names(set(target.names))
    for name, grid, block in zip(AXES, target.launch.grid, target.block, strict=True):
        count = Literal(f"{int(grid) * block}u") if grid.isdigit() else Name(names.free(f"threads_{name}"))
        found.append(_Axis(name, grid, block, count))
    every = " * ".join(f"({launched_along(target.launch, a.name)})" for a in found)
    return found if always(target.contract, f"{every} <= {_MOST - _THREADS}") else None


def _orders(target: Target, names: list[str]) -> Iterator[str]:
    """Orders of the axes whose first is the one along which most is contiguous, if that is not x."""
    steps = contiguous(target, _RECORD)
    ids = {a: "blockIdx" if extent == "1" else "threadIdx" for a, extent in zip(AXES, target.launch.block, strict=True)}
    along = {axis: steps.get(f"{ids[axis]}.{axis}", 0) for axis in AXES}
    first = max(names, key=lambda name: along[name])
    if first != "x" and along[first] > along["x"]:
        for rest in permutations(n for n in names if n != first):
            yield first + "".join(rest)


def _told(ordered: list[_Axis], named: _Names) -> tuple[list[Stmt], dict[tuple[str, str], Expr]]:
    """Declarations of a thread's number along each axis, and what its ids are by them."""
    lines, told = list[Stmt](), dict[tuple[str, str], Expr]()
    left: Expr = Name(named.number)
    for at, axis in enumerate(ordered):
        number = named.free(f"number_{axis.name}")
        last = at == len(ordered) - 1
        lines.append(Declare(f"const {_TYPE}", number, left if last else Binary("%", left, axis.count)))
        if not last:
            rest = named.free("thread_rest")
            lines.append(Declare(f"const {_TYPE}", rest, Binary("/", left, axis.count)))
            left = Name(rest)
        told |= axis.of(Name(number))
    return lines, told


def _product(parts: list[Expr]) -> Expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = Binary("*", whole, part)
    return whole


def _relaunched(launch: Launch, given: tuple[ScalarArgument, ...]) -> Launch:
    every = " * ".join(f"({launched_along(launch, name)})" for name in AXES)
    grid = (f"ceil_div({every}, {_THREADS})", "1", "1")
    return replace(launch, grid=grid, block=(str(_THREADS), "1", "1"), args=(*launch.args, *given))
