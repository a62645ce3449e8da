"""Small buffers that a kernel only reads, at places that data decides, in shared memory: the kernel copies them first.

Where the sizes say how long one is, the launch gives a block memory for it, and sizes at which it does not fit keep to
global memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.accesses import element, pointed
from fsr.analysis.calls import is_load
from fsr.analysis.effects import Unclear, element_type
from fsr.analysis.lookups import Followed, Uses
from fsr.analysis.macros import expanded, hides_names
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, parse
from fsr.hardware.c_types import dtype_bytes
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import Candidate, Launch, Role, ScalarArgument
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    Index,
    KernelForm,
    Literal,
    Name,
    OpaqueExpr,
    Param,
    Stmt,
    Ternary,
    Unary,
    number,
)  # fmt: skip
from fsr.source.macros import reached_by_macros
from fsr.source.mapping import rewrite
from fsr.source.parse import parse_device_functions
from fsr.source.types import resolve_dtype, type_bytes
from fsr.source.walk import BARRIER, fresh, names_in, walk_expr, walk_stmts
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move
from fsr.transform.sizes import constant_of
from fsr.transform.target import Target
from fsr.transform.thread_number import THREAD, THREADS

MOST_BYTES = 32 * 1024  # beside what the kernel shares already
FEWEST = 16  # elements of a table that is worth it
_EACH = 16  # elements that a thread copies at most, in one of the timed cases at least


@dataclass(frozen=True, slots=True)
class ArgumentTable:
    """A parameter's buffer. ``places``: how many elements it has, as a size expression; ``count``: that where it is one
    number, else None; ``limit``: bytes that it may take."""

    param: Param
    type: str
    element_bytes: int
    places: str
    count: int | None
    limit: int

    @property
    def held(self) -> str:
        """How many elements a block keeps, as a size expression: none where they do not fit."""
        return f"({self.places} if ({self.places}) * {self.element_bytes} <= {self.limit} else 0)"

    @property
    def shared_bytes(self) -> str:
        """The dynamic shared memory for it, as a size expression."""
        return f"{self.element_bytes} * {self.held}"


def argument_tables(target: Target, *, keep_launch: bool) -> Iterator[ArgumentTable]:
    """The buffers of which a block may keep a copy. With ``keep_launch`` the launch gives no memory."""
    room = _room(target)
    hidden = reached_by_macros(target.source)
    for param in target.kernel.params:
        table = _table(target, param, room) if param.is_pointer and param.name not in hidden else None
        if table is None or (table.count is None and (keep_launch or target.launch.shared_bytes.strip() != "0")):
            continue
        if _uses(target, param.name) is not None and _pays(target, table):
            yield table


def with_copy(target: Target, move: Move, table: ArgumentTable) -> Candidate:
    """The candidate whose blocks read their own copy."""
    kernel = expanded(target.kernel, target.source)
    made = _Made(target, table)
    new = replace(kernel, params=(*kernel.params, *made.params), body=(*made.copied(), *made.read(kernel)))
    return rewritten(target, move, new, launch=made.launch)


def _table(target: Target, param: Param, room: int) -> ArgumentTable | None:
    """A buffer whose size allows it."""
    argument, type_ = target.argument(param.name), element_type(param.type)
    if argument is None or argument.role is not Role.IN or argument.layout or param.name not in target.unaliased:
        return None
    plain = param.type.count("*") == 1 and "volatile" not in param.type and "&" not in param.type
    wide = dtype_bytes(argument.dtype) or 0
    if not plain or not wide or resolve_dtype(type_, target.aliases) != (argument.dtype, 1):
        return None
    places = target.elements(param.name) or ""
    count, limit = constant_of(target.contract, places), min(MOST_BYTES, room)
    if limit <= 0 or (count is not None and (count < FEWEST or count * wide > limit)):
        return None
    return ArgumentTable(param, type_, wide, places, count, limit)


def _uses(target: Target, name: str) -> Uses | None:
    """How a kernel uses a table; None where that cannot be followed, or no place is decided by data."""
    form = expanded(target.kernel, target.source)
    if hides_names(form, target.source):
        return None
    followed = Followed(target.source)
    try:
        uses = followed.kernel(form, name)
    except Unclear:
        return None
    changing = any(isinstance(x, OpaqueExpr) for place in uses.places for x in walk_expr(place))
    return uses if followed.looked_up and not changing else None


def _pays(target: Target, table: ArgumentTable) -> bool:
    """Whether in one of the timed cases the table fits and is no more than a few elements for each thread to copy."""
    threads = target.threads or 0
    if table.count is not None:
        return table.count <= _EACH * threads
    try:
        parse(table.shared_bytes)
        held = [evaluate_int(table.held, sizes) for sizes in target.contract.timed_sizes()]
    except ContractError:
        return False
    return any(FEWEST <= n <= _EACH * threads for n in held)


def _room(target: Target) -> int:
    """Bytes of shared memory that a block has left, with the static memory of the file's functions taken; 0 where that
    cannot be told."""
    forms = [target.kernel, *parse_device_functions(target.source).values()]
    declared = [s for f in forms if not _is_repeated(target, f) for s in walk_stmts(f.body) if _is_static(s)]
    sizes = [_bytes(target, s) for s in declared if isinstance(s, Declare)]
    dynamic = constant_of(target.contract, target.launch.shared_bytes)
    words = target.source.count("__shared__")
    if dynamic is None or None in sizes or len(sizes) + target.source.count("extern __shared__") != words:
        return 0
    return STATIC_SHARED_BYTES - dynamic - sum(s or 0 for s in sizes)


def _is_repeated(target: Target, form: KernelForm) -> bool:
    """Whether there may be a function's memory more than once."""
    text = target.source
    return form.template is not None and form.name != target.kernel.name and text.count(f" {form.name}<") > 0


def _is_static(s: Stmt) -> bool:
    return isinstance(s, Declare) and "__shared__" in s.qualifiers and "extern" not in s.qualifiers


def _bytes(target: Target, declared: Declare) -> int | None:
    total = type_bytes(declared.type, target.aliases)
    for extent in declared.dims:
        total *= target.poly(extent).value or 0
    return total + 16 if total else None


class _Made:
    """The new kernel's parts."""

    def __init__(self, target: Target, table: ArgumentTable) -> None:
        self._table, self._source = table, target.source
        taken = set(target.names)
        self._shared, self._held, self._at, self._near = (
            fresh(f"{table.param.name}_{end}", taken) for end in ("shared", "held", "at", "near")
        )
        self.params = (Param("int", self._held),) if table.count is None else ()
        uses = _uses(target, table.param.name)
        assert uses is not None
        self._handed = bool(uses.handed)

    def launch(self, old: Launch) -> Launch:
        """The launch, with memory for a table of which the sizes say how long it is."""
        if self._table.count is not None:
            return old
        held = ScalarArgument("int32", self._table.held)
        return replace(old, shared_bytes=self._table.shared_bytes, args=(*old.args, held))

    def copied(self) -> Iterator[Stmt]:
        """The memory and its filling, in which all threads take part."""
        table, shared, at = self._table, Name(self._shared), Name(self._at)
        sized = table.count is None
        qualifiers = ("extern", "__shared__") if sized else ("__shared__",)
        count: Expr = Name(self._held) if table.count is None else number(table.count)
        yield Declare(table.type, self._shared, None, (Literal("") if sized else count,), qualifiers)
        copy = Assign(Index(shared, at), "=", Index(Name(table.param.name), at))
        yield For("int", self._at, THREAD, "<", count, THREADS, (copy,))
        yield BARRIER
        if self._handed:
            whole: Expr = Ternary(self._is_held, shared, Name(table.param.name)) if sized else shared
            yield Declare(f"{table.param.type.rstrip()} const", self._near, whole)

    @property
    def _is_held(self) -> Expr:
        return Binary("!=", Name(self._held), number(0))

    def read(self, kernel: KernelForm) -> tuple[Stmt, ...]:
        """The kernel's statements with the copy in the table's place."""
        return rewrite(kernel.body, self._changed)

    def _changed(self, e: Expr) -> Expr | None:
        """What an expression is with the copy; None where its parts are to be looked at."""
        name = self._table.param.name
        if name not in names_in(e):
            return e
        place = element(Unary("*", e.args[0]) if isinstance(e, Call) and is_load(e) else e, frozenset({name}))
        if place is not None:
            index = rewrite(place[1][0], self._changed)
            near = Index(Name(self._shared), index)
            return near if self._table.count is not None else Ternary(self._is_held, near, Index(Name(name), index))
        if isinstance(e, Unary) and e.op == "&" and (behind := pointed(e, frozenset({name}))) is not None:
            return Binary("+", Name(self._near), rewrite(behind[1] or number(0), self._changed))
        return Name(self._near) if isinstance(e, Name) else None
