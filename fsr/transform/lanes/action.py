"""share-loop: neighbouring lanes of a warp share what one thread did, in kernels of any shape.

Where a thread goes through a long loop alone, threads are few, and neighbours are far apart in memory or wait for the
one with the longest list. With the loop's turns dealt out to 4 to 32 lanes there are so many times more threads, lanes
read neighbours, and a list is as many times shorter. Lanes are told the ids of the thread that they stand for, do all
but the loops alike, put together by shuffles what turns hand on, and the first of them stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from fsr.analysis.effects import Unclear
from fsr.analysis.functions import hiding_macros
from fsr.records import Candidate, Launch
from fsr.source.form import Binary, Comment, Declare, Expr, For, KernelForm, Member, Name, Stmt, number
from fsr.source.walk import BUILTINS, fresh, kernel_names, walk_stmts
from fsr.transform.collectives import missing_helpers
from fsr.transform.lanes.forms import forms
from fsr.transform.lanes.loops import Loops, Shared
from fsr.transform.lanes.own_elements import OwnArray, dealt, own_arrays, packed
from fsr.transform.lanes.promise import gain
from fsr.transform.lanes.work import Work
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.launch.told_ids import Ids, ids_in, taken_apart, with_ids
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.rows.action import ROW_PER_WARP
from fsr.transform.rows.share import Group, times
from fsr.transform.sizes import INT_LIMIT, largest
from fsr.transform.target import Target, target_of, targets

LANES = (8, 32, 4, 16)
LEVELS = ("outer", "inner")  # of loops in one another that can be shared
_WARP = 32
_X = Member(Name("threadIdx"), "x")
_LEAST_GAIN = 1.02


@dataclass(frozen=True)
class _Way:
    """A kernel, in the form in which some of its loops are shared, and those. ``own``: arrays of which each lane keeps
    the elements of its turns."""

    target: Target
    loops: Loops
    shared: tuple[Shared, ...]
    work: Work
    own: tuple[OwnArray, ...]


class ShareLoop:
    """4, 8, 16 or 32 lanes for what one thread did, each with every so many turns of its loops."""

    name = "share-loop"
    aims_at = frozenset({"occupancy", "latency", "uncoalesced", "bandwidth"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        """A move a group size for the outermost loops that can be shared, and for the innermost."""
        for target in () if subject.keep_launch else targets(subject):
            if _threads(target) is None:
                continue
            ways = _ways_of(subject, target)
            as_row = ways and any(m.region == target.kernel.name for m in ROW_PER_WARP.moves(subject))
            for level, way in ways.items():
                for rank, lanes in enumerate(LANES):
                    if _fits(target, way, lanes):
                        found = gain(subject.gpu, way.target, way.shared, lanes, alone=way.work.alone)
                        found = min(found, 0.5 * found + 0.5) if as_row else found
                        params = (("loops", level), ("lanes", lanes))
                        yield Move(self.name, target.region, params, max(_LEAST_GAIN, found) - 0.001 * rank)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with groups of lanes in its threads' place."""
        target, lanes = target_of(subject, move), int(move.param("lanes"))
        way = _ways_of(subject, target)[str(move.param("loops"))]
        kernel, helpers = _kernel(way, lanes)
        threads = _threads(target)

        def launch(old: Launch) -> Launch:
            x, y, z = old.grid
            return replace(old, grid=(f"({x}) * {lanes}", y, z), block=(str(threads), "1", "1"))

        needed = missing_helpers(target.source, helpers)
        return rewritten(target, move, kernel, launch=launch, helpers=needed)


# ---------------------------------------------------------------- which loops


def _threads(target: Target) -> int | None:
    """Threads a block, if that can be the same for groups of lanes."""
    return target.threads if target.threads and target.threads % min(LANES) == 0 else None


def _fits(target: Target, way: _Way, lanes: int) -> bool:
    """Whether blocks are whole groups, the grid holds them, and no lane is without a turn at the timed sizes."""
    threads, blocks = _threads(target), largest(target.contract, f"({target.launch.grid[0]}) * {lanes}")
    if not threads or threads % lanes or blocks is None or blocks > INT_LIMIT:
        return False
    turns = max((s.turns or _WARP for s in way.shared), default=0)
    return lanes <= max(turns, min(LANES))


def _ways_of(subject: Subject, target: Target) -> dict[str, _Way]:
    """As :func:`_ways`, found once for a subject."""
    return subject.once(("share-loop", target.region), partial(_ways, target))


def _ways(target: Target) -> dict[str, _Way]:
    """The loops to share by level: as the kernel is written, or in a form in which more can be."""
    found = dict[str, tuple[tuple[int, int], _Way]]()
    for form in forms(target):
        if cooperates(form):  # as all that follow do, which take their time
            break
        if kernel_names(form.kernel) & hiding_macros(form.source):
            continue
        for level in LEVELS:
            way = _way(form, level)
            if way is not None and found.get(level, ((0, 0), way))[0] < (size := _size(way.shared)):
                found[level] = size, way
    ways = {level: way for level, (_, way) in found.items()}
    if len(ways) > 1 and [s.loop for s in ways["outer"].shared] == [s.loop for s in ways["inner"].shared]:
        del ways["inner"]
    return ways


def _way(target: Target, level: str) -> _Way | None:
    try:
        loops = Loops(target)
        shared, own = _choice(loops, level)
        return _Way(target, loops, shared, Work(loops, shared), own) if shared else None
    except Unclear:
        return None


def _choice(loops: Loops, level: str) -> tuple[tuple[Shared, ...], tuple[OwnArray, ...]]:
    """The loops to share, and the arrays whose elements lanes keep then: none that another loop touches."""
    body, loops.own = loops.kernel.body, own_arrays(loops.target)
    while True:
        shared = tuple(loops.outermost(body) if level == "outer" else loops.innermost(body))
        rounds = [s.loop for s in shared if s.run is not None]
        own, lost = dealt(loops.own.values(), (s.loop for s in shared), rounds)
        if not lost:
            return shared, tuple(own)
        loops.own = {name: array for name, array in loops.own.items() if array not in lost}


def _size(shared: tuple[Shared, ...]) -> tuple[int, int]:
    """How many loops are shared, with those in them, and how many of a length that is known."""
    count = sum(isinstance(s, For) for each in shared for s in walk_stmts((each.loop,)))
    return count, sum(each.turns is not None for each in shared)


# ---------------------------------------------------------------- the new kernel


def _kernel(way: _Way, lanes: int) -> tuple[KernelForm, frozenset[str]]:
    """The kernel for groups of so many lanes, and the device functions that it calls."""
    target, taken = way.target, set(way.target.names) | BUILTINS

    def name(wanted: str) -> str:
        found = fresh(wanted, taken)
        taken.add(found)
        return found

    group = Group(lanes, target.threads or 0, name("lane"))
    head: list[Stmt] = [
        Comment(f"// {lanes} lanes for each thread of before, with its ids"),
        Declare("const int", group.lane, Binary("%", Member(Name("threadIdx"), "x"), number(lanes))),
    ]
    mask: Expr | None = None
    if lanes < _WARP and way.work.meets:
        mask = Name(name("group"))
        head.append(Declare("const unsigned int", mask.text, group.mask))
    told, ids = _ids(target, lanes, name)
    body = with_ids(packed(way.work.body(group, mask, taken), way.own, group, name), told)
    return replace(target.kernel, body=(*head, *ids, *body)), way.work.helpers(group)


def _ids(target: Target, lanes: int, name: Callable[[str], str]) -> tuple[Ids, list[Stmt]]:
    """What stands for the ids and extents of before, and the declarations that it needs. A block of before is as many
    blocks in a row as a group has lanes."""
    block = target.block or (1, 1, 1)
    threads = block[0] * block[1] * block[2]
    used = ids_in(target.kernel.body)
    place, part = Member(Name("blockIdx"), "x"), number(lanes)
    thread = Binary("+", times(Binary("%", place, part), number(threads // lanes)), Binary("/", _X, part))
    told: dict[tuple[str, str], Expr] = {}
    steps: list[Stmt] = []
    if ("blockIdx", "x") in used:
        old = Name(name("block"))
        told["blockIdx", "x"] = old
        steps.append(Declare("const unsigned int", old.text, Binary("/", place, part)))
    if ("gridDim", "x") in used:
        told["gridDim", "x"] = Binary("/", Member(Name("gridDim"), "x"), part)
    if not any(variable == "threadIdx" for variable, _ in used):
        return told, steps
    whole = Name(name("thread"))
    steps.append(Declare("const unsigned int", whole.text, thread))
    return told | taken_apart(whole, block, within=True), steps
