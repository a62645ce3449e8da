"""tile-size: another number in the place of the constant that gives a block, and the tiles it works on, their extent.

``#define TILE 16`` with blocks of TILE x TILE threads is written in a thousand courses, and how large it should be
depends on the GPU. Arrays, loops and ids follow by themselves, as they name the constant; the launch follows here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.analysis.macros import expanded
from fsr.expressions import divisors, rescaled
from fsr.hardware.limits import MAX_THREADS
from fsr.records import Candidate, Launch
from fsr.source.entry import function_name
from fsr.source.form import Binary, Member, Name
from fsr.source.integers import integers
from fsr.source.items import flat, parse_items
from fsr.source.macros import macros
from fsr.source.names import reached, words
from fsr.source.rewrite import definition
from fsr.source.tokens import skeleton, tokenize
from fsr.source.walk import contains_warp_wide, nodes
from fsr.transform.launch.strided_blocks import goes_in_strides
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always, passed_text
from fsr.transform.target import target_for

_WARP, _ENOUGH = 32, 128  # threads: fewer leave lanes idle, or a multiprocessor too few warps
_SIDES = (8, 16, 32)
_LINES = (32, 64, 128, 256, 512, 1024)
_GAIN, _MOST_GAIN = 1.1, 4.0
_LARGE, _STRIDED_GAIN = 256, 1.5
_MOST = 4  # sizes that are offered


@dataclass(frozen=True)
class _Tile:
    """A constant and the launches of the kernels that name it. ``span``: of the number in the source, in bytes;
    ``strided``: blocks go through something of their own in strides of it, and there are as many with another one."""

    name: str
    value: int
    span: tuple[int, int]
    positions: tuple[int, ...]
    strided: bool


@dataclass(frozen=True)
class TileSize:
    """Changes the constant, and grids and blocks with it."""

    name: str = "tile-size"
    aims_at: frozenset[str] = frozenset(["occupancy", "latency", "uncoalesced", "launch", "bandwidth"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The sizes around the present one, and whole warps where it is none, that every launch can follow."""
        for tile in () if subject.keep_launch else _tiles(subject):
            fitting = [v for v in _wanted(subject, tile) if _made(subject, tile, v) is not None]
            for value in fitting[:_MOST]:
                yield Move(self.name, "plan", ((tile.name, value),), _gain(subject, tile, value))

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with that number."""
        ((name, value),) = move.params
        tile = next(t for t in _tiles(subject) if t.name == name)
        made = _made(subject, tile, int(value))
        assert made is not None
        return replace(made, actions=(*made.actions, move.name))


def _gain(subject: Subject, tile: _Tile, value: int) -> float:
    """More where blocks had less than a few warps."""
    if tile.strided and tile.value > _LARGE >= value:
        return _STRIDED_GAIN  # trees of fewer levels, and barriers for fewer warps
    launch = subject.candidate.plan.launches[tile.positions[0]]
    before = math.prod(int(b) for b in launch.block)
    after = math.prod(int(b) for b in _block(launch, tile.value, value) or launch.block)
    return float(min(_MOST_GAIN, max(_GAIN, (min(after, _ENOUGH) / before) ** 0.75)))


def _wanted(subject: Subject, tile: _Tile) -> list[int]:
    """Numbers worth trying, nearest first; a power of two stays one, as trees ask for it."""
    launch = subject.candidate.plan.launches[tile.positions[0]]
    flat_ = [b for b in launch.block if b != "1"] == [str(tile.value)]
    found = [v for v in (_LINES if flat_ else _SIDES) if v != tile.value]
    if tile.value & (tile.value - 1):
        found += [k * tile.value for k in range(2, MAX_THREADS // tile.value + 1)]
        whole = [v for v in found if v >= _WARP or not flat_]
        return sorted(dict.fromkeys(whole), key=lambda v: abs(math.log(v / _ENOUGH)))
    return sorted(found, key=lambda v: (abs(math.log(v / tile.value)), -v))


# ---------------------------------------------------------------- what may change


def _tiles(subject: Subject) -> list[_Tile]:
    return subject.once("tile sizes", lambda: list(_found(subject)))


def _found(subject: Subject) -> Iterator[_Tile]:
    source, launches = subject.candidate.source, subject.candidate.plan.launches
    fixed = integers(source)
    reach = {name: _reached(source, name) for name in subject.kernels}
    for name, start, text in _numbers(source):
        value, using = int(text), {kernel for kernel, names in reach.items() if name in names}
        if fixed.get(name) != value or not 1 < value <= MAX_THREADS:
            continue
        positions = tuple(i for i, x in enumerate(launches) if function_name(x.entry) in using)
        named = frozenset[str]().union(*(reach[k] for k in using))
        others = (n for n, v in fixed.items() if v == value and n != name and n in named)
        alike = any(not _leads_to(source, n, name) for n in others)
        tied = all(_places_blocks(subject, k, name) for k in using)
        strided = not tied and all(_goes_in_strides(subject, k, name) for k in using)
        if positions and (tied or strided) and not alike and not any(_literally(subject, k, value) for k in using):
            first = len(source[:start].encode())
            yield _Tile(name, value, (first, first + len(text)), positions, strided)


_MACRO = re.compile(r"#[ \t]*define[ \t]+(\w+)[ \t]+(\d+)[ \t]*(?://.*|/\*.*\*/[ \t]*)?")
_CONSTANT = re.compile(r"^[^\n;{}(]*\bconst(?:expr)?\b[^\n;{}(]*\b(\w+)\s*=\s*(\d+)\s*;", re.MULTILINE)


def _numbers(source: str) -> Iterator[tuple[str, int, str]]:
    """Names that stand for a number alone, macros and constants at file level: where it stands, and how."""
    for token in tokenize(source):
        match = _MACRO.fullmatch(token.text.strip()) if token.kind == "directive" else None
        if match is not None:
            yield match[1], token.start + token.text.index(match[0]) + match.start(2), match[2]
    for match in _CONSTANT.finditer(skeleton(source)):
        yield match[1], match.start(2), match[2]


@lru_cache(maxsize=64)
def _mentioned(source: str) -> Mapping[str, set[str]]:
    """The names that the definition of each name mentions."""
    below: dict[str, set[str]] = {}
    for macro in macros(source):
        below.setdefault(macro.name, set()).update(words(macro.body))
    for item in flat(parse_items(source, strict=False)):
        for name in item.names:
            below.setdefault(name, set()).update(item.uses)
    return below


def _reached(source: str, name: str) -> frozenset[str]:
    """All names that a kernel, or a constant, mentions, or what it names does."""
    return reached((name,), _mentioned(source))


def _leads_to(source: str, other: str, name: str) -> bool:
    """Whether a constant follows from another: ``#define PAD TILE``."""
    return name in _reached(source, other)


def _places_blocks(subject: Subject, kernel: str, name: str) -> bool:
    """Whether a kernel takes the number for the extent of a block: ``blockIdx.x * TILE``."""
    for e in nodes(expanded(subject.kernels[kernel], subject.candidate.source).body):
        match e:
            case Binary("*", left, right):
                sides = ((left, right), (right, left))
                if any(isinstance(a, Member) and a.base == Name("blockIdx") and b == Name(name) for a, b in sides):
                    return True
    return False


def _goes_in_strides(subject: Subject, kernel: str, name: str) -> bool:
    target = target_for(subject, subject.kernels[kernel])
    return target is not None and goes_in_strides(target, name)


def _literally(subject: Subject, kernel: str, value: int) -> bool:
    """Whether a kernel has the number itself, too, which would have to change as well; or lanes decide on it."""
    form, source = subject.kernels[kernel], subject.candidate.source
    numbers = {t.text.rstrip("uUlL") for t in tokenize(definition(source, form)) if t.kind == "number"}
    return str(value) in numbers or (contains_warp_wide(form.body) and value % _WARP != 0)


# ---------------------------------------------------------------- the candidate


def _made(subject: Subject, tile: _Tile, value: int) -> Candidate | None:
    """The candidate with another number; None where a launch cannot follow."""
    old = subject.candidate
    launches = list(old.plan.launches)
    for at in tile.positions:
        made = _follows(subject, launches[at], tile, value)
        if made is None or not _within_bounds(subject, made):
            return None
        launches[at] = made
    if not _divides(subject, tile, value):
        return None
    data = old.source.encode()
    source = (data[: tile.span[0]] + str(value).encode() + data[tile.span[1] :]).decode()
    return replace(old, source=source, plan=replace(old.plan, launches=tuple(launches)))


def _block(launch: Launch, old: int, new: int) -> tuple[str, str, str] | None:
    """A block with the number in its extents in the place of another, or the square of it."""
    changed = {str(old): str(new), str(old * old): str(new * new)}
    x, y, z = (changed.get(b.strip(), b) for b in launch.block)
    if (x, y, z) == launch.block or not all(b.strip().isdigit() for b in launch.block):
        return None
    threads = int(x) * int(y) * int(z)
    return (x, y, z) if threads <= MAX_THREADS and (threads >= _WARP or new > old) else None


def _follows(subject: Subject, launch: Launch, tile: _Tile, new: int) -> Launch | None:
    old, block = tile.value, _block(launch, tile.value, new)
    if block is None or launch.shared_bytes.strip() != "0":
        return None
    if tile.strided:
        apart = not re.search(rf"\b{old}\b", " ".join(launch.grid))  # blocks that are counted by threads are others
        return replace(launch, block=block) if apart and launch.block == (str(old), "1", "1") else None
    grid = [
        _extent(subject, text, old, new) if after != before.strip() else _left(text, old, before)
        for text, before, after in zip(launch.grid, launch.block, block, strict=True)
    ]
    if None in grid or tuple(grid) == launch.grid:
        return None  # nothing tells that threads of other blocks would do what these leave
    x, y, z = (str(g) for g in grid)
    return replace(launch, grid=(x, y, z), block=block)


def _within_bounds(subject: Subject, launch: Launch) -> bool:
    """Whether a kernel is compiled for as many threads, where ``__launch_bounds__`` says by a number for how many."""
    bounds = subject.kernels[function_name(launch.entry)].launch_bounds
    return not bounds or not bounds[0].isdigit() or math.prod(map(int, launch.block)) <= int(bounds[0])


def _left(text: str, old: int, extent: str) -> str | None:
    """Blocks along an axis whose extent stays; None where they may hang on the number all the same."""
    own = divisors(text) - {int(extent)}
    return None if any(d % old == 0 for d in own) else text


def _extent(subject: Subject, text: str, old: int, new: int) -> str | None:
    """Blocks along an axis; None where they cannot be as many threads as before, and a guard cannot be expected."""
    if text.strip().isdigit():
        whole = int(text) * old
        return str(whole // new) if whole % new == 0 else None
    made = rescaled(text, old, new)
    if made == text:
        return text if not re.search(rf"\b{old}\b", text) else None
    rounded = "ceil_div" in text or f"+ {old - 1}" in text
    made = re.sub(rf"\+ {old - 1}\b", f"+ {new - 1}", made)
    exact = always(subject.contract, f"({made}) * {new} == ({text}) * {old}")
    return made if exact or rounded else None


def _divides(subject: Subject, tile: _Tile, value: int) -> bool:
    """Whether what was always a multiple of the old number, and of which no rest is asked for, is one of the new."""
    fixed, source = integers(subject.candidate.source), subject.candidate.source
    reach = frozenset[str]().union(*(
        _reached(source, function_name(subject.candidate.plan.launches[i].entry)) for i in tile.positions))  # fmt: skip
    named = (v for n, v in fixed.items() if n in reach and v > tile.value and not _leads_to(source, n, tile.name))
    if any(v % tile.value == 0 and v % value for v in named):
        return False
    launches = (subject.candidate.plan.launches[i] for i in tile.positions)
    passed = {passed_text(subject.contract, a) for launch in launches for a in launch.args}
    return not any(
        always(subject.contract, f"({p}) % {tile.value} == 0") and not always(subject.contract, f"({p}) % {value} == 0")
        for p in passed - {""}
    )
