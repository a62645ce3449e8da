"""Blocks of exactly one warp, whose threads have to do with one another alone: they may stand beside others in a larger
block, as warps of it.

What lanes do as a warp (shuffles, votes, reductions, waits) is the same there, full masks too, as long as each lane
keeps its place. A wait of the block is one of the warp.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from math import prod

from fsr.analysis.functions import ASM, names_defined, own_name, speaking
from fsr.analysis.groups import is_block, waits_for_block
from fsr.records import Launch
from fsr.source.form import Call, Declare, Expr, ExprStmt, Literal, Member, Name, Stmt
from fsr.source.mapping import map_exprs, map_stmts
from fsr.source.walk import BARRIER, BUILTINS, Block, contains_opaque, identifiers, walk_stmts
from fsr.transform.launch.cooperation import known_calls, place_aware, remembers
from fsr.transform.target import Target

WARP = 32
_WAIT = ExprStmt(Call(Name("__syncwarp"), ()))
_CG = r"(?:cg::|cooperative_groups::)?"
_LANES = re.compile(
    r"__(?:(?:shfl(?:_up|_down|_xor)?|ballot|any|all)(?:_sync)?|match_(?:any|all)_sync|activemask|syncwarp|nanosleep|"
    r"reduce_(?:add|min|max|and|or|xor)_sync|threadfence(?:_block|_system)?)|"
    rf"{_CG}(?:reduce|(?:in|ex)clusive_scan|coalesced_threads|(?:plus|less|greater|bit_(?:and|or|xor))<[\w ]*>)"
)
_TILE = re.compile(rf"{_CG}tiled_partition<(\w+)>")
_OF_TILE = re.compile(r"thread_rank|size|num_threads|sync|shfl(?:_up|_down|_xor)?|any|all|ballot|match_(?:any|all)")
_OWN_TILE = re.compile(rf"{_CG}tiled_partition<32>\(\s*{_CG}this_thread_block\(\)\s*\)")
# What a function says that makes its block of another size, or its warp one of several, matter.
_BLOCK_WIDE = re.compile(
    r"__(?!syncwarp)sync|__barrier|__cluster|__shared|__launch_dependents|this_thread|this_(multi_)?grid|this_cluster|"
    r"meta_group|tiled_partition|pipeline"
)
_PTX_WIDE = frozenset(
    ["bar", "barrier", "mbarrier", "exit", "wgmma", "tcgen05", "setmaxnreg", "griddepcontrol", "cluster", "shared"]
)
_FOREIGN = re.compile(r'#[ \t]*include[ \t]*(?:"|<(?!cooperative_groups/(?:reduce|scan)\.h>)[^>\n]*/)')


def as_warps(target: Target, shared: Collection[Declare] = ()) -> Block | None:
    """The statements of a kernel whose blocks are one warp each, for warps of a larger block: where the block waits,
    the warp does. Ids and extents stay, to be told anew. ``shared``: what it declares that each block has of its own.
    None where the block is none such, or something in it may ask for more than the warp."""
    body = target.kernel.body
    if not _is_warp(target.launch) or contains_opaque(body) or _FOREIGN.search(target.source):
        return None
    if remembers(tuple(s for s in body if s not in shared)):
        return None
    blocks = frozenset(s.name for s in walk_stmts(body) if isinstance(s, Declare) and is_block(s))
    tiles = _tiles(target, body, blocks)
    names = [s.name for s in walk_stmts(body) if isinstance(s, Declare)]
    if any(names.count(group) > 1 for group in (*blocks, *tiles)):
        return None
    of_warp = _of_warp(target.launch, body, blocks, tiles)
    return of_warp if _stays_in_warp(target, of_warp, blocks, tiles) else None


def _is_warp(launch: Launch) -> bool:
    return all(extent.isdigit() for extent in launch.block) and prod(map(int, launch.block)) == WARP


def _tiles(target: Target, body: Block, blocks: frozenset[str]) -> dict[str, int]:
    """Groups of lanes by name, and how many lanes each has: 0 of one whose lanes the data tells."""
    found = dict[str, int]()
    for s in walk_stmts(body):
        match s:
            case Declare(name=name, init=Call(Name(made), (parent,))) if _makes_tile(made, parent, blocks, found):
                size = _TILE.fullmatch(made)
                found[name] = int(target.constants.get(size[1], size[1])) if size and _is_size(target, size[1]) else 0
            case Declare(name=name, init=Call(Name(made), ())) if made.endswith("coalesced_threads"):
                found[name] = 0
    return found


def _is_size(target: Target, text: str) -> bool:
    return text.isdigit() or text in target.constants


def _makes_tile(made: str, parent: Expr, blocks: frozenset[str], tiles: Mapping[str, int]) -> bool:
    if not _TILE.fullmatch(made):
        return False
    match parent:
        case Name(text):
            return text in blocks or text in tiles
        case Call(Name(text), ()):
            return text.endswith("this_thread_block")
    return False


def _of_warp(launch: Launch, body: Block, blocks: frozenset[str], tiles: Mapping[str, int]) -> Block:
    """The statements without what is said of a block and holds for a warp in the same way."""
    flat = launch.block[1:] == ("1", "1")

    def waits(s: Stmt) -> Stmt:
        return _WAIT if s == BARRIER or (isinstance(s, ExprStmt) and waits_for_block(s.expr, blocks)) else s

    def asks(e: Expr) -> Expr:
        match e:
            case Call(Member(Name(group), "thread_rank"), ()) if group in blocks and flat:
                return Member(Name("threadIdx"), "x")
            case Call(Member(Name(group), "meta_group_rank"), ()) if tiles.get(group) == WARP:
                return Literal("0u")
            case Call(Member(Name(group), "meta_group_size"), ()) if tiles.get(group) == WARP:
                return Literal("1u")
        return e

    return map_stmts(body, waits, asks)


def _stays_in_warp(target: Target, body: Block, blocks: frozenset[str], tiles: Mapping[str, int]) -> bool:
    """Whether all that is called is known, and of the warp alone, and ids are asked for by their parts."""
    own = names_defined(target.source)

    def of_tile(e: Expr) -> Expr:
        match e:
            case Call(Name(made), (parent,)) if _makes_tile(made, parent, blocks, tiles):
                return Literal("0")
            case Call(Member(Name(group), method), args) if group in tiles and _OF_TILE.fullmatch(method):
                return Call(Name("__activemask"), args)
        return e

    known = map_exprs(map_stmts(body, lambda s: () if isinstance(s, Declare) and s.name in blocks else s), of_tile)
    aware = block_aware(target.source) - {target.kernel.name}
    if identifiers(known) & blocks or place_aware(target, known, aware | (BUILTINS - {"warpSize"})):
        return False

    def of_lanes(e: Expr) -> bool:
        name = e.callee.text if isinstance(e, Call) and isinstance(e.callee, Name) else ""
        return _LANES.fullmatch(name) is not None and own_name(name) not in own

    return known_calls(target, known, aware, foreign=_FOREIGN, others=of_lanes)


@lru_cache(maxsize=64)
def block_aware(source: str) -> frozenset[str]:
    """Names of what speaks of the block that a warp is of, or of its place there, directly or through others."""
    text = _OWN_TILE.sub(lambda m: "0".ljust(len(m[0])), source)
    return speaking(text, _asks_for_block)


def _asks_for_block(used: frozenset[str]) -> bool:
    wide = bool(used & (BUILTINS - {"warpSize"})) or any(map(_BLOCK_WIDE.search, used))
    return wide or bool(used & ASM and used & _PTX_WIDE)
