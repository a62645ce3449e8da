"""The loop whose turns are shared: in strides of the block's threads, of a thread alone, and over memory that nobody
writes, so that any block may have any of them."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.analysis.accesses import accesses_in, declared_arrays
from fsr.analysis.calls import is_atomic
from fsr.analysis.conditions import exclusive
from fsr.analysis.effects import Pointers, Unclear, pointers
from fsr.analysis.polynomial import Poly, constant, polynomial
from fsr.analysis.threads import AXES
from fsr.analysis.types import number_type
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Assign, Binary, Call, Declare, Expr, For, Index, KernelForm, Member, Name, Stmt
from fsr.source.walk import (
    Block,
    breaks,
    contains_barrier,
    contains_opaque,
    contains_return,
    contains_warp_wide,
    names_assigned,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.sizes import INT_LIMIT, always, largest, largest_timed
from fsr.transform.target import Target
from fsr.transform.turns.shared import counts_up

MOST_PARTS = 128
_X, _Y, _WIDTH, _HEIGHT = (Member(Name(v), a) for v in ("threadIdx", "blockDim") for a in "xy")
_NUMBERS = (  # that a thread has, and how many there are of them
    (Binary("+", _X, Binary("*", _Y, _WIDTH)), Binary("*", _WIDTH, _HEIGHT)), (_X, _WIDTH),
)  # fmt: skip


@dataclass(frozen=True)
class Turns:
    """``before``, ``loop``, ``behind``: the kernel's body. ``bound``: which the loop's variable stays below; ``room``
    and ``step`` as size expressions: of the variable's values, from a thread's first one to the bound at most, and from
    one turn to the next. ``handed``: variables of the thread that turns change and that outlive one."""

    before: Block
    loop: For
    behind: Block
    bound: Expr
    room: str
    step: str
    handed: frozenset[str]

    def each(self, parts: int) -> str:
        """How many turns of a thread a part has, as a size expression."""
        return f"max(1, ceil_div(ceil_div({self.room}, {self.step}), {parts}))"

    def timed(self, target: Target) -> int:
        """How many turns a thread has at the timed sizes."""
        return largest_timed(target.contract, f"ceil_div({self.room}, {self.step})") or 0


def turns_of(target: Target) -> Turns | None:
    """The first loop of a kernel if its turns may be shared; None where that cannot be shown."""
    body = target.kernel.body
    at = next((n for n, s in enumerate(body) if isinstance(s, For)), None)
    if at is None or contains_opaque(body):
        return None
    loop = body[at]
    assert isinstance(loop, For)
    if not counts_up(loop, target) or not _in_strides(loop, target):
        return None
    bound = exclusive(loop.bound, loop.relation)
    sized = _sized(loop, bound, target)
    own = _private(loop.body)
    handed = names_assigned(loop.body) - own
    if sized is None or not handed <= _plain_variables(body[:at], target):
        return None
    if not _is_apart(target, body[:at], loop):
        return None
    return Turns(body[:at], loop, body[at + 1 :], bound, *sized, handed)


def _private(stmts: Block) -> frozenset[str]:
    """Variables of a turn's own."""
    return frozenset(s.name for s in walk_stmts(stmts) if isinstance(s, Declare)) | {
        s.var for s in walk_stmts(stmts) if isinstance(s, For) and s.type is not None
    }


def _plain_variables(before: Block, target: Target) -> frozenset[str]:
    """Numbers that stand in front of the loop as variables of the thread."""
    return frozenset(
        s.name for s in before
        if isinstance(s, Declare) and not s.dims and not s.qualifiers and not set("*&") & set(s.type)
        and number_type(target.known.types.get(s.name, ""), target.aliases) in BY_SPELLING
    )  # fmt: skip


# ---------------------------------------------------------------- the loop's head


def _in_strides(loop: For, target: Target) -> bool:
    """Whether the threads of a block begin one behind the other, and go on by all of them, or a multiple."""
    known = {name: constant(value) for name, value in target.numbers.items()}
    start, step, bound = (target.known.poly(e, target.numbers) for e in (loop.start, loop.step, loop.bound))
    if bound.depends_on(["threadIdx"]) or step.depends_on(["threadIdx", "blockIdx"]):
        return False
    for thread, count in _NUMBERS:
        times = step.over(polynomial(count, known))
        if times is not None and not (start - polynomial(thread, known)).depends_on(["threadIdx"]):
            return True
    return False


def _sized(loop: For, bound: Expr, target: Target) -> tuple[str, str] | None:
    """Room and step as size expressions; None where they depend on more, or on numbers that an int does not hold."""
    start, end, step = (target.known.poly(e, target.numbers) for e in (loop.start, bound, loop.step))
    room, last, wide = _most(end - start, target), _most(end, target), _most(step, target)
    whole = target.size_text(bound)
    if (room is None or last is None) and whole is not None and all(count > 0 for _, count in start.terms):
        room = last = f"({whole})"
    if room is None or last is None or wide is None or not always(target.contract, f"({wide}) > 0"):
        return None
    reach = largest(target.contract, f"max({last}, 0) + 2 * max({room}, 0) + {2 * MOST_PARTS} * ({wide})")
    return (room, wide) if reach is not None and reach <= INT_LIMIT else None


def _most(value: Poly, target: Target) -> str | None:
    """What a polynomial is at most, as a size expression: of ids, which are less than their extents, and of sizes."""
    texts = list[str]()
    for names, count in value.terms:
        factors = [_greatest(name, target) for name in names]
        if None in factors or not all(always(target.contract, f"({f}) >= 0") for f in factors):
            return None
        if count > 0:
            shown = [str(count)] if count != 1 or not factors else []
            texts.append(" * ".join([*shown, *(f"({f})" for f in factors)]))
        elif not any(name.startswith(("threadIdx", "blockIdx")) for name in names):
            texts.append(" * ".join([f"(0 - {-count})", *(f"({f})" for f in factors)]))
    return " + ".join(texts) or "0"


def _greatest(name: str, target: Target) -> str | None:
    base, _, axis = name.partition(".")
    dims = {"threadIdx": target.launch.block, "blockDim": target.launch.block}.get(base, target.launch.grid)
    if base in ("threadIdx", "blockIdx", "blockDim", "gridDim") and axis in AXES:
        extent = dims[AXES.index(axis)]
        return f"({extent}) - 1" if base.endswith("Idx") else extent
    return target.size_text(Name(name))


# ---------------------------------------------------------------- what turns touch


def _is_apart(target: Target, before: Block, loop: For) -> bool:
    """Whether a turn, and what is done before all turns, is the thread's alone and reads what nobody writes."""
    if breaks(loop.body) or contains_return(loop.body):
        return False
    stmts: Block = (*before, loop)
    if contains_barrier(stmts) or contains_warp_wide(stmts) or not all(_stays(e, target) for e in walk_exprs(stmts)):
        return False
    if any(_has_another_name(s) for s in walk_stmts(stmts)) or _hands_out(target, stmts):
        return False
    return _reads_alone(target, stmts, _private(loop.body))


def _stays(e: Expr, target: Target) -> bool:
    if isinstance(e, Member) and e.arrow:
        return False
    return not is_atomic(e) and target.functions.stays_in_thread(e, target.type_names)


def _has_another_name(s: Stmt) -> bool:
    """Whether a variable is one of another name, or keeps its value from call to call."""
    if not isinstance(s, Declare):
        return False
    kept = set(s.qualifiers) - {"constexpr", "__shared__", "extern"}
    return bool(kept and not any("__shared__" in q for q in s.qualifiers)) or (
        "&" in s.type and "const" not in s.type.split()
    )


def _hands_out(target: Target, stmts: Block) -> bool:
    """Whether a function may change what it is given, and that outlives a statement."""
    known = target.kernel.by_reference
    return any(
        f"{e.callee.text}({n}" in known
        for e in walk_exprs(stmts) if isinstance(e, Call) and isinstance(e.callee, Name)
        for n, _ in enumerate(e.args)
    )  # fmt: skip


def _reads_alone(target: Target, stmts: Block, private: frozenset[str]) -> bool:
    roots = _roots(target)
    if roots is None:
        return False
    body = target.kernel.body
    named = frozenset(e.base.text for e in walk_exprs(stmts) if isinstance(e, Index) and isinstance(e.base, Name))
    arrays = frozenset(roots) | declared_arrays(body) | named
    own = frozenset(s.name for s in walk_stmts(stmts) if isinstance(s, Declare) and s.dims and not s.qualifiers)
    shared = frozenset(s.name for s in walk_stmts(body) if isinstance(s, Declare) and "__shared__" in s.qualifiers)
    written = {roots.get(a.array or "", a.array) for a in accesses_in(body, arrays) if a.writes}
    if None in written:  # it may be any memory
        return False
    for a in accesses_in(stmts, arrays):
        root = roots.get(a.array or "", a.array)
        if root is None or root in shared:
            return False
        if a.array in own and a.kind in ("read", "write", "update"):
            if a.writes and a.array not in private and any(a.loops):
                return False  # it outlives a turn
            continue
        if a.writes or root in written:
            return False
    return not names_assigned(stmts) & frozenset(roots)


def _roots(target: Target) -> dict[str, str] | None:
    """The memory of each pointer, by name; None where one may point anywhere."""
    kernel = target.kernel
    try:
        head = KernelForm(kernel.name, kernel.params, ())
        roots = dict(pointers(head, target.passed, target.contract.aliasing).roots)
    except Unclear:
        return None
    stmts = list(walk_stmts(kernel.body))
    roots |= {s.name: s.name for s in stmts if isinstance(s, Declare) and s.dims}
    for s in stmts:
        if isinstance(s, Declare) and "*" in s.type:
            root = Pointers(roots, {}).root(s.init) if s.init is not None else None
            if root is None or s.dims or roots.get(s.name, root) != root:
                return None
            roots[s.name] = root
        if isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in roots and s.op == "=":
            return None
    return roots
