"""Cooperative groups that a kernel makes of the threads of its block."""

from __future__ import annotations

from collections.abc import Collection

from fsr.analysis.types import bare
from fsr.source.form import Call, Declare, Expr, Member, Name


def is_block(s: Declare) -> bool:
    """Whether a variable is the group of all threads of the block."""
    match s:
        case Declare("auto" | "const auto", init=Call(Name(made))):
            return made.endswith("this_thread_block")
    return bare(s.type).endswith("thread_block")


def waits_for_block(e: Expr, blocks: Collection[str]) -> bool:
    """Whether a call is a barrier of such a group."""
    match e:
        case Call(Name("cg::sync" | "cooperative_groups::sync" | "sync"), (Name(group),)):
            return group in blocks
        case Call(Member(Name(group), "sync"), ()):
            return group in blocks
    return False
