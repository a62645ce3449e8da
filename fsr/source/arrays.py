"""Arrays that a function declares: their elements, and whether a name means one alone."""

from __future__ import annotations

import re

from fsr.source.form import Declare, Expr, Index, KernelForm, Literal, Name
from fsr.source.items import parse_items
from fsr.source.walk import Block, names_in, names_mentioned, variables, walk_stmts

_OF_FILE = re.compile(r"extern\s+__shared__\s+((?:\w+\s+)*?\w+)\s+(\w+)\s*\[\s*\]\s*;")


def indices_of(e: Expr, array: Declare) -> list[Expr] | None:
    """The indices of a whole element of the array."""
    found: list[Expr] = []
    while isinstance(e, Index):
        found.insert(0, e.index)
        e = e.base
    return found if e == Name(array.name) and len(found) == len(array.dims) else None


def is_only_one(kernel: KernelForm, declared: Declare) -> bool:
    """Whether a kernel has no other variable of the name."""
    own = any(s is declared for s in walk_stmts(kernel.body))
    return variables(kernel.body).count(declared.name) == own and declared.name not in {p.name for p in kernel.params}


def shared_on_top(body: Block) -> tuple[Declare, ...] | None:
    """The declarations of what a block shares, all of which stand at the top of a kernel's body; None where one stands
    within something else."""
    every = [s for s in walk_stmts(body) if isinstance(s, Declare) and "__shared__" in s.qualifiers]
    return tuple(every) if all(any(s is one for one in body) for s in every) else None


def shared_in_front(body: Block) -> tuple[Declare, ...] | None:
    """The same, where they can stand in front of all else: no extent is made of the kernel's own variables."""
    found, own = shared_on_top(body), set(variables(body))
    return None if found is None or any(names_in(d) & own for s in found for d in s.dims) else found


def with_memory_of_file(kernel: KernelForm, source: str) -> Block:
    """The kernel's statements behind declarations of the launch's shared memory that it uses, which stands in front of
    all functions: there or here it is the same memory."""
    if not _OF_FILE.search(source):  # of every kernel that is looked at: items are parsed for few
        return kernel.body
    texts = [source[i.start : i.end] for i in parse_items(source, strict=False) if i.kind == "variable"]
    found = [m for text in texts if (m := _OF_FILE.fullmatch(text.strip()))]
    used = names_mentioned(kernel.body) - set(variables(kernel.body)) - {p.name for p in kernel.params}
    declared = (Declare(m[1], m[2], None, (Literal(""),), ("extern", "__shared__")) for m in found if m[2] in used)
    return (*declared, *kernel.body)
