"""tile-threads: each thread does several threads' work in both directions, from tiles that its block loads together.

Register blocking and tiles of shared memory, as for matrix products (Volkov and Demmel, "Benchmarking GPUs to tune
dense linear algebra", SC 2008), for any arithmetic between the lines of two operands: products of quaternions,
distances, sums of minima, bits in common. What a thread reads of a line serves several others in its registers, and
what the block reads serves all of its threads. Each thread's operations stay as they were, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.effects import Unclear
from fsr.analysis.threads import AXES
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.form import Binary, Param
from fsr.source.walk import Block
from fsr.transform.details.shared_locals import room_of
from fsr.transform.plan import along, rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import timed_blocks
from fsr.transform.target import Target, target_of, targets
from fsr.transform.tiles.cost import cost_of
from fsr.transform.tiles.form import Tiled, for_factors, tiled
from fsr.transform.tiles.text import Shape, TiledText, shared_bytes

_FACTORS = ((4, 4), (2, 2), (4, 2), (2, 4), (8, 4), (4, 1), (1, 4))  # along y and along x
_TURNS = (16, 8, 32)
_MOST_WORDS, _MANY_WORDS = 128, 64  # registers of what all parts of a thread hand on
_ENOUGH_THREADS = 256  # of a multiprocessor, each with several chains of operations in flight
_MOST = 6  # moves
_MOST_GAIN, _LEAST_GAIN = 4.0, 1.01


class TileThreads:
    """Each thread does ``y`` times ``x`` threads, which stand blocks apart; tiles hold what ``turns`` turns read."""

    name = "tile-threads"
    aims_at = frozenset({"latency", "instructions", "compute", "bandwidth", "uncoalesced"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The most promising of a few sizes."""
        for target in () if subject.keep_launch else targets(subject):
            plain = tiled(target)
            if plain is not None:
                length = _turns(target, plain)
                offered = (_offered(subject, target, plain, shape) for shape in _shapes(length))
                yield from _best([m for m in offered if m is not None])

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose threads do several of before each."""
        target = target_of(subject, move)
        plain = tiled(target)
        assert plain is not None
        factors = {"x": int(move.param("x")), "y": int(move.param("y"))}
        made = _made(target, plain, Shape(factors, int(move.param("turns"))))
        assert made is not None
        kernel = replace(target.kernel, body=made.body, params=(*target.kernel.params, *made.params))
        return rewritten(target, move, kernel, launch=lambda one: _regrid(one, made.shape.factors, made.args))


def _turns(target: Target, found: Tiled) -> int:
    """Of the loop, as timed."""
    length = target.timed(Binary("-", found.loop.bound, found.loop.start))
    return _TURNS[0] if length is None else length // (target.poly(found.loop.step).value or 1)


def _shapes(length: int) -> Iterator[Shape]:
    """All that may be tried for a loop of so many turns."""
    for y, x in _FACTORS:
        for turns in _TURNS:
            if turns <= max(length, min(_TURNS)):
                yield Shape({"x": x, "y": y}, turns)


def _best(moves: Iterable[Move]) -> list[Move]:
    """The most promising factors with the best tile for each, and the best factors with the other ones."""
    by_factors = dict[tuple[int | str, ...], list[Move]]()
    for move in sorted(moves, key=lambda m: -m.gain):
        by_factors.setdefault((move.param("y"), move.param("x")), []).append(move)
    first, *others = by_factors.values() or [[]]
    found = [*first, *(some[0] for some in others[: _MOST - len(first)])]
    return sorted(found, key=lambda m: -m.gain)


def _regrid(launch: Launch, factors: Mapping[str, int], args: tuple[ScalarArgument, ...]) -> Launch:
    """The launch with as many times fewer blocks."""
    grid = launch.grid
    for axis, factor in factors.items():
        if factor > 1:
            grid = along(grid, axis, f"ceil_div({grid[AXES.index(axis)]}, {factor})")
    return replace(launch, grid=grid, args=(*launch.args, *args))


@dataclass(frozen=True)
class _Made:
    """A kernel's new body, what it is passed besides, and the registers of what its threads hand on."""

    found: Tiled
    shape: Shape
    body: Block
    params: tuple[Param, ...]
    args: tuple[ScalarArgument, ...]
    words: int


def _made(target: Target, plain: Tiled, shape: Shape) -> _Made | None:
    """The body for a shape; None where a variable cannot be an array, or there is no room for the tiles."""
    found, block = for_factors(plain, target, shape.factors), target.block
    if block is None or sum(shared_bytes(block, t, shape) for t in found.reads.tiles) > room_of(target):
        return None
    parts = shape.factors["x"] * shape.factors["y"]
    shape = replace(shape, unroll=cost_of(found).unrolled(parts, shape.turns))
    try:
        text = TiledText(found, shape)
        body = text.body()
    except Unclear:
        return None
    grid = target.launch.grid
    params = tuple(Param("unsigned int", name) for name in found.counts.values())
    args = tuple(ScalarArgument("uint32", grid[AXES.index(axis)]) for axis in found.counts)
    return _Made(found, shape, body, params, args, text.words)


def _offered(subject: Subject, target: Target, plain: Tiled, shape: Shape) -> Move | None:
    """The move, where a launch has so many blocks and a thread so many registers."""
    x, y = shape.factors["x"], shape.factors["y"]
    grid = _regrid(target.launch, shape.factors, ()).grid
    if (x > 1 and target.launch.grid[0] == "1") or (y > 1 and target.launch.grid[1] == "1"):
        return None
    made = _made(target, plain, shape)
    if made is None or made.words > _MOST_WORDS:
        return None
    threads = timed_blocks(subject.contract, replace(target.launch, grid=grid)) * (target.threads or 0)
    filled = min(1.0, threads / (subject.gpu.sm_count * _ENOUGH_THREADS))
    room = 1.0 if made.words <= _MANY_WORDS else 0.9
    gain = min(cost_of(made.found).speedup(shape.factors), _MOST_GAIN) * filled * room
    gain -= 0.02 * _TURNS.index(shape.turns)
    params = (("y", y), ("x", x), ("turns", shape.turns))
    return Move(TileThreads.name, target.region, params, max(gain, _LEAST_GAIN))
