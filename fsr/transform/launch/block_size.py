"""Another block size: more threads to hide latency behind, fewer to fit more blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from fsr.analysis.threads import AXES
from fsr.expressions import divisors, rescaled, with_divisors
from fsr.records import Candidate, Launch
from fsr.source.form import Declare, KernelForm, Stmt
from fsr.source.walk import walk_stmts
from fsr.transform.launch.pointwise import Pointwise, id_declarations, pointwise, pointwise_targets
from fsr.transform.launch.strided_blocks import goes_in_strides
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of

LINES = (64, 128, 256, 512, 1024)
BAKED = (128, 256, 512, 1024)  # for kernels with the size as a constant: what tree reductions can take
GAIN = 1.1
_WARPS = 32  # that a block may have


@dataclass(frozen=True, slots=True)
class BlockSize:
    """Changes the block, and the grid along with it, of kernels over one global id; and of kernels
    whose block size is a template argument."""

    name: str = "block-size"
    aims_at: frozenset[str] = frozenset(["occupancy", "latency", "uncoalesced", "launch"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Other sizes than the present one."""
        for target, point in pointwise_targets(subject):
            if point is not None and target.block is not None:
                for size in LINES if set(point.ids) == {"x"} else ():
                    if size != target.threads:
                        yield Move(self.name, target.region, (("threads", size),), GAIN)
            elif sizes := _strided(target):
                for size in sizes:
                    yield Move(self.name, target.region, (("threads", size),), GAIN)
            elif _template_position(target) is not None and not target.exact:
                for size in BAKED:
                    if size != target.threads:
                        yield Move(self.name, target.region, (("threads", size),), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with that block."""
        target = target_of(subject, move)
        size = int(move.param("threads"))
        point = pointwise(target)
        if point is None:
            if size in _strided(target):
                changed = _bounded(target.kernel, size)
                return rewritten(target, move, changed, launch=lambda one: replace(one, block=(str(size), "1", "1")))
            position = _template_position(target)
            assert position is not None
            return rewritten(
                target, move, _bounded(target.kernel, size), launch=lambda one: _baked(one, position, size)
            )
        kernel = _bounded(replace(target.kernel, body=_plain(point)), size)
        block = {"x": size, "y": 1, "z": 1}
        return rewritten(target, move, kernel, launch=lambda one: regrid(one, point, block))


def regrid(launch: Launch, point: Pointwise, block: dict[str, int], each: dict[str, int] | None = None) -> Launch:
    """The launch with another block, and just enough blocks for all ids, ``each`` of an axis for one thread."""
    grid = []
    for axis in AXES:
        per_block = block[axis] * (each or {}).get(axis, 1)
        grid.append(f"ceil_div({point.bounds[axis][1]}, {per_block})" if axis in point.bounds else "1")
    x, y, z = (str(block[axis]) for axis in AXES)
    return replace(launch, grid=(grid[0], grid[1], grid[2]), block=(x, y, z))


def _plain(point: Pointwise) -> tuple[Stmt, ...]:
    """The body with every width that was written into an id replaced by blockDim."""
    fresh = {s.name: s for s in id_declarations(point) if isinstance(s, Declare)}
    return tuple(fresh.get(s.name, s) if isinstance(s, Declare) else s for s in point.target.kernel.body)


def _bounded(kernel: KernelForm, threads: int) -> KernelForm:
    """The kernel with its launch bound, if it has one, set to the new number of threads."""
    return replace(kernel, launch_bounds=(str(threads),)) if kernel.launch_bounds else kernel


def _strided(target: Target) -> list[int]:
    """Other numbers of threads for blocks that go through something of their own in strides of ``blockDim``: those that
    what the block shares has room for."""
    threads = target.row_threads
    if threads is None or any(re.search(rf"\b{threads}\b", g) for g in target.launch.grid):
        return []
    if re.search(rf"'{threads}[uU]?[lL]*'", str(target.kernel.body)) or not goes_in_strides(target, "blockDim"):
        return []
    shared = [s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare) and "__shared__" in s.qualifiers]
    room = min((_extent(s, target) for s in shared if s.dims and not _of_warps(s, target)), default=LINES[-1])
    room = min(room, threads) if target.launch.shared_bytes != "0" else room
    return [size for size in LINES if size != threads and size <= room]


def _extent(array: Declare, target: Target) -> int:
    """Elements of a shared array; 0 where that is no number."""
    extents = [target.known.poly(d, target.numbers).value or 0 for d in array.dims]
    return prod(extents)


def _of_warps(array: Declare, target: Target) -> bool:
    """Whether an array has an element for each warp that a block may have."""
    return _extent(array, target) == _WARPS


def _template_position(target: Target) -> int | None:
    """Which template argument is the block size: the only integer one, equal to a one-dimensional power-of-two
    block, whose number stands nowhere else in the kernel, nor in the grid but as what is divided by."""
    threads = target.threads
    if target.kernel.template is None or target.block is None or target.block[1:] != (1, 1) or threads not in BAKED:
        return None
    arguments = template_arguments(target.launch.entry)
    places = [i for i, a in enumerate(arguments) if a.isdigit() and int(a) == threads]
    parameters = [name for _, name in target.kernel.template_parameters]
    if len(places) != 1 or len(arguments) != len(parameters):
        return None
    text = str(target.kernel.body)
    shares = {d for g in target.launch.grid for d in divisors(g) if d % threads == 0}
    written = any(re.search(rf"'{n}[uU]?'", text) for n in {threads, *shares})
    if written or not re.search(rf"'{parameters[places[0]]}'|\b{parameters[places[0]]}\b", text):
        return None
    left = (*(with_divisors(g, dict.fromkeys(shares, 1)) for g in target.launch.grid), target.launch.shared_bytes)
    return None if any(re.search(rf"\b{threads}\b", g) for g in left) else places[0]


def _baked(launch: Launch, position: int, size: int) -> Launch:
    """The launch of another instance: what each block has a share of is shared among more or fewer."""
    old = int(template_arguments(launch.entry)[position])
    x, y, z = (rescaled(text, old, size) for text in launch.grid)
    return replace(launch, entry=_entry(launch.entry, position, size), grid=(x, y, z), block=(str(size), "1", "1"))


def template_arguments(entry: str) -> list[str]:
    """The template arguments of an entry expression without nested ones: ``['16', 'float']``."""
    inner = entry[entry.index("<") + 1 : entry.rindex(">")] if "<" in entry else ""
    return [a.strip() for a in inner.split(",") if a.strip()] if "<" not in inner else []


def _entry(entry: str, position: int, value: int) -> str:
    arguments = template_arguments(entry)
    arguments[position] = str(value)
    return f"{entry[: entry.index('<')]}<{', '.join(arguments)}>"
