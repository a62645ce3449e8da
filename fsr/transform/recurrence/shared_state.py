"""The shared arrays of a block as the arrays of a recurrence's state: one for each array, or part of a dynamic one."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Binary, Cast, Declare, Expr, Index, Member, Name, OpaqueExpr
from fsr.source.walk import Block, integer, loops, names_in, walk_exprs
from fsr.transform.sizes import always
from fsr.transform.target import Target

MOST_PARTS = 8
THREAD, THREADS_OF_BLOCK = Member(Name("threadIdx"), "x"), Member(Name("blockDim"), "x")


@dataclass(frozen=True)
class StateArray:
    """``name`` stands for part ``part`` of the shared array ``root``, of as many elements as the block has threads;
    ``lead``: extents before the last. ``copied``: a step must hand on what it does not write."""

    name: str
    root: str
    part: int
    type: str
    lead: tuple[int, ...] = ()
    copied: bool = True

    @property
    def key(self) -> tuple[str, int]:
        """What names of the same memory have in common."""
        return self.root, self.part


def arrays_of(target: Target, before: Block, everything: Block) -> dict[str, StateArray]:
    """The shared arrays by name, those of pointers into them too; nothing where one is used in another way."""
    found = dict[str, StateArray]()
    roots = {s.name: s for s in before if isinstance(s, Declare) and "__shared__" in s.qualifiers}
    for s in roots.values():
        lead = [integer(d) if integer(d) is not None else target.constants.get(_text(d)) for d in s.dims[:-1]]
        if not s.dims or s.type not in BY_SPELLING or None in lead:
            return {}
        found[s.name] = StateArray(s.name, s.name, 0, s.type, tuple(x for x in lead if x is not None))
    pointers = [s for s in before if isinstance(s, Declare) and s.type.endswith("*") and s.init is not None]
    for pointer in pointers:
        if pointer.init is not None and names_in(pointer.init) & set(roots):
            made = _pointed(target, pointer, roots)
            if made is None:
                return {}
            found[pointer.name] = made
    used = {name: a for name, a in found.items() if name in _bases(everything)}
    several = {a.root for a in found.values() if a.part}
    if any(len({a.type for a in used.values() if a.root == root}) > 1 for root in roots):
        return {}
    if not all(_stays_inside(target, e, everything) for e in _elements_of(found, several, everything)):
        return {}
    first = dict[tuple[str, int], StateArray]()
    return {name: first.setdefault(a.key, a) for name, a in used.items()}


def is_own(target: Target, e: Index) -> bool:
    """Whether an element has the number of the thread."""
    return target.poly(e.index) == target.poly(THREAD)


def _text(e: Expr) -> str:
    return e.text if isinstance(e, Name | OpaqueExpr) else ""


def _pointed(target: Target, s: Declare, roots: dict[str, Declare]) -> StateArray | None:
    """A pointer to a part of a shared array, as many elements from its begin as some blocks have threads."""
    type_ = s.type.removesuffix("*").strip().removeprefix("const ")
    base, offset = s.init, "0"
    match s.init:
        case Binary("+", left, right):
            base, offset = left, target.size_text(right) or "-1"
    if isinstance(base, Cast):
        base = base.operand
    if (
        not isinstance(base, Name)
        or base.text not in roots
        or type_ not in BY_SPELLING
        or len(roots[base.text].dims) > 1
    ):
        return None
    whole = BY_SPELLING[roots[base.text].type].bytes == BY_SPELLING[type_].bytes
    threads = target.launch.block[0]
    for part in range(MOST_PARTS):
        if always(target.contract, f"({offset}) == {part} * ({threads})") and (whole or not part):
            return StateArray(s.name, base.text, part, type_)
    return None


def _bases(everything: Block) -> frozenset[str]:
    """The names that elements are of."""
    found = set[str]()
    for e in walk_exprs(everything):
        if isinstance(e, Index) and isinstance(e.base, Name):
            found.add(e.base.text)
        elif isinstance(e, Index):
            base: Expr = e
            while isinstance(base, Index):
                base = base.base
            found |= {base.text} if isinstance(base, Name) else set()
    return frozenset(found)


def _elements_of(arrays: dict[str, StateArray], several: set[str], everything: Block) -> list[Index]:
    """Elements of arrays that lie beside others in one."""
    return [
        e for e in walk_exprs(everything)
        if isinstance(e, Index) and isinstance(e.base, Name) and e.base.text in arrays
        and arrays[e.base.text].root in several
    ]  # fmt: skip


def _stays_inside(target: Target, e: Index, everything: Block) -> bool:
    """Whether an index is the thread's number, or that of a loop over as many elements as the block has threads."""
    if is_own(target, e):
        return True
    own = [loop for loop in loops(everything) if isinstance(e.index, Name) and loop.var == e.index.text]
    threads = target.launch.block[0]
    for loop in own:
        start, bound = target.size_text(loop.start), target.size_text(loop.bound)
        if start is None or bound is None or loop.relation != "<":
            return False
        if not always(target.contract, f"min({start}, ({threads}) - ({bound})) >= 0"):
            return False
    return bool(own)
