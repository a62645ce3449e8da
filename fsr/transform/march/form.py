"""Marches: a loop in which every thread goes along an axis, and what it hands on from turn to turn.

Where a turn needs nothing of the turns before it but delay lines, any thread may take a part of the turns if it begins
some turns early, to fill the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.definitions import shadowing
from fsr.analysis.delay_lines import DelayLines, delay_lines
from fsr.analysis.macros import expanded, hides_names
from fsr.analysis.made_of import Around
from fsr.analysis.types import is_integer
from fsr.source.counted import counted
from fsr.source.form import Binary, Declare, ExprStmt, For, If, Member, Name, Scope, Stmt
from fsr.source.loop_heads import without_continue
from fsr.source.mapping import map_stmts
from fsr.source.names import words
from fsr.source.walk import (
    BARRIER,
    Block,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    jumps,
    names_mentioned,
    names_written,
    walk_expr,
    walk_exprs,
    walk_stmts,
)
from fsr.transform.launch.cooperation import hands_on_ids
from fsr.transform.march.places import Touched, own_places
from fsr.transform.march.rings import rings
from fsr.transform.march.scene import Scene, scene_of
from fsr.transform.march.steps import Step, forwarded, steps_of
from fsr.transform.target import Target

Levels = tuple[tuple[Block, int], ...]


@dataclass(frozen=True)
class March:
    """``target``: with the kernel as it is read; ``loop``: of it; ``levels``: the statement lists around the loop,
    outermost first, each with the place of the next one or the loop; ``by``: what the loop's variable moves by, of
    ``type``; ``steps``: other variables that move with the turns; ``lines``: what is handed on; ``scene``: what
    is known around the loop."""

    target: Target
    loop: For
    levels: Levels
    by: int
    type: str
    steps: tuple[Step, ...]
    lines: DelayLines
    scene: Scene

    @property
    def turns(self) -> int | None:
        """Turns as timed; None where sizes do not tell."""
        over = Binary("-", self.loop.bound, self.loop.start)
        length = self.target.timed(over)
        return None if length is None else (abs(length) + (len(self.loop.relation) > 1)) // abs(self.by)


def marches(target: Target) -> Iterator[March]:
    """The kernel's marches, as it stands, or with its macros written out."""
    plain, written = target.kernel, expanded(target.kernel, target.source)
    for kernel in (plain,) if written == plain else (plain, written):
        if hides_names(kernel, target.source) or not _can_be_read(target, kernel.body):
            continue
        turns = map_stmts(counted(kernel.body), lambda s: _as_turns(s, target.known.types))
        read = replace(target, kernel=replace(kernel, body=turns))
        found = [m for loop, levels in _loops(read.kernel.body, ()) if (m := _march(read, loop, levels)) is not None]
        if found:
            yield from found
            return


def _can_be_read(target: Target, body: Block) -> bool:
    """Whether nothing is hidden, and threads have no more to do with one another than barriers and shared memory."""
    if contains_opaque(body) or contains_warp_wide(body) or hands_on_ids(target, body):
        return False
    barriers = {id(x) for s in walk_stmts(body) if isinstance(s, ExprStmt) and is_barrier(s) for x in walk_expr(s.expr)}
    calls = (e for e in walk_exprs(body) if id(e) not in barriers)
    return all(target.functions.stays_in_thread(e, target.type_names) for e in calls)


def is_barrier(s: Stmt) -> bool:
    """Whether a statement is a barrier of the block."""
    return s == BARRIER


def _as_turns(s: Stmt, types: Mapping[str, str]) -> Stmt:
    """A loop whose turn ends early under a condition, as one that does the rest under the opposite; see forwarded."""
    return replace(s, body=forwarded(without_continue(s.body) or s.body, types)) if isinstance(s, For) else s


def _loops(body: Block, around: Levels) -> Iterator[tuple[For, Levels]]:
    """The loops under no other, and what is around each."""
    for at, s in enumerate(body):
        levels = (*around, (body, at))
        match s:
            case For():
                yield s, levels
            case Scope(inner):
                yield from _loops(inner, levels)
            case If(_, then, orelse):
                yield from _loops(then, levels)
                yield from _loops(orelse, levels)


def _march(target: Target, loop: For, levels: Levels) -> March | None:
    by = target.poly(loop.step).value
    type_ = loop.type or target.known.types.get(loop.var, "")
    if not by or loop.relation not in (("<", "<=") if by > 0 else (">", ">=")) or not is_integer(type_):
        return None
    if jumps(loop.body) or contains_return(loop.body) or loop.var in names_written(loop.body):
        return None
    scene = scene_of(target, loop)
    if scene is None or not (scene.same(loop.start) and scene.same(loop.bound)):
        return None
    barrier = contains_barrier(loop.body)
    if barrier and (target.size_text(loop.start) is None or target.size_text(loop.bound) is None):
        return None  # some threads of a block might have more turns than others
    locals_ = _locals(target, levels)
    if shadowing(loop.body, frozenset(locals_) | {loop.var, *(p.name for p in target.kernel.params)}):
        return None
    steps = steps_of(loop, target.known.types, scene.same)
    if not _memory_allows(target, scene, Touched(loop, by, steps, scene.changing, barrier, levels)):
        return None
    lines = delay_lines(loop, _around(target, scene, levels, locals_, steps))
    if lines is None or not (lines.depth or barrier or steps):
        return None
    return March(target, loop, levels, by, type_, steps, lines, scene)


def _locals(target: Target, levels: Levels) -> dict[str, Declare]:
    """The variables of the thread that are in sight of the loop."""
    found = {p.name: Declare(p.type, p.name) for p in target.kernel.params if not p.is_pointer}
    own = (s for block, at in levels for s in block[:at] if isinstance(s, Declare))
    return found | {s.name: s for s in own if "__shared__" not in s.qualifiers}


def _around(
    target: Target, scene: Scene, levels: Levels, locals_: dict[str, Declare], steps: tuple[Step, ...]
) -> Around:
    behind = [s for block, at in levels for s in block[at + 1 :]]
    stepping = frozenset(step.name for step in steps) | {scene.loop.var}
    return Around(
        locals_, scene.roots, scene.shared, frozenset(a.root for a in scene.inside if a.writes), stepping,
        names_mentioned(behind), scene.same, scene.value, scene.changing, _members(target), rings(target, scene, steps),
        target.kernel.by_reference,
    )  # fmt: skip


def _members(target: Target) -> dict[str, frozenset[str]]:
    """The members of each variable that a kernel mentions by name; none where some might share memory."""
    found = dict[str, set[str]]()
    if "union" in words(target.source):
        return {}
    for e in walk_exprs(target.kernel.body):
        if isinstance(e, Member) and isinstance(e.base, Name) and not e.arrow:
            found.setdefault(e.base.text, set()).add(e.name)
    return {name: frozenset(members) for name, members in found.items()}


def _memory_allows(target: Target, scene: Scene, touched: Touched) -> bool:
    """Whether no turn touches what another one writes, and what is written outside the loop, nobody reads."""
    inside, outside = scene.inside, scene.outside
    if any(a.kind in ("atomic", "opaque") for a in (*inside, *outside)):
        return False
    written = {a.root for a in inside if a.writes} - scene.shared
    once = {a.root for a in outside if a.writes} - scene.shared
    params = {p.name for p in target.kernel.params}
    if not written or not written | once <= params:
        return False
    if once & {a.root for a in (*inside, *(a for a in outside if a.kind != "write"))}:
        return False
    if written & {a.root for a in outside}:
        return False
    ends = {id(s) for block, at in touched.levels for s in walk_stmts(block[at + 1 :])}
    behind = {a.root for a in outside if a.writes and id(a.statement) in ends}
    if behind & {a.root for a in outside if a.writes and id(a.statement) not in ends} - scene.shared:
        return False  # the last segment does not wait for the first one
    used = {a.root for a in (*inside, *outside)} & params
    if any(target.may_alias(one, other) for one in written | once for other in used - {one}):
        return False
    return all(own_places(target, [a for a in inside if a.root == root], touched) for root in written)
