"""A kernel in which one block owns one row, said as one thread a row, so that the row can be shared out anew.

``for (j = threadIdx.x; j < n; j += blockDim.x)`` becomes a loop over all of j, a value that the block has combined
becomes the loop's own total, and what thread 0 does alone is simply done. What one thread then does for a row is what
the block did, up to the order of sums. Where a thread's part of a value is seen in any other way, nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.analysis.effects import Unclear
from fsr.analysis.types import aliases, is_integer
from fsr.source.counted import counted
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Return,
    Scope,
    Stmt,
    While,
)  # fmt: skip
from fsr.source.mapping import rewrite, substitute
from fsr.source.walk import (
    BUILTINS,
    base_name,
    fresh,
    integer,
    names_changed,
    names_in,
    names_mentioned,
    taken_names,
    walk_exprs,
    walk_stmts,
    without_casts,
)
from fsr.transform.protocol import Subject
from fsr.transform.rows.block_values import (
    THREAD,
    Combiners,
    Partial,
    folds_of,
    leaders_branch,
    start_number,
    starts_neutral,
)
from fsr.transform.rows.row_kernel import RowKernel, guard_of, plain_types, scene_of
from fsr.transform.rows.thread_numbers import uses_threads
from fsr.transform.rows.units import flatten, units_of
from fsr.transform.target import Target, target_for

BLOCK = Member(Name("blockIdx"), "x")
_BARRIERS = ("__syncthreads", "__syncwarp")


def block_row_kernel(subject: Subject, kernel: KernelForm) -> RowKernel | None:
    """The kernel as one row a thread, ``lifted`` from one row a block; None where that cannot be shown."""
    found = target_for(subject, kernel)
    threads = None if found is None else found.row_threads
    if found is None or threads is None or threads % 32 or not 32 <= threads <= 1024:
        return None
    if _has_type_parameters(kernel) or (kernel.template is not None and subject.keep_launch):
        return None  # another instantiation may have another block
    plain = plain_types(kernel, aliases(found.source))
    try:
        row, body = _with_row(_without_thread_names(counted(plain.body)), kernel)
        body = _settled_pointers(body, plain)
        exact = subject.contract.tolerance.exact
        body = _Lift(replace(found, kernel=plain), threads, exact=exact).level(body, {})
        if row.name in names_changed(body) or uses_threads(body):
            return None
        place = replace(found, kernel=replace(plain, body=(row, *body)))
        scene = scene_of(place, exact=exact)
        units = units_of(body, scene)
    except Unclear:
        return None
    if not any(u.kind == "loop" for u in flatten(units)):
        return None
    guard = guard_of(row.name, body)
    guarded = None if guard is None else place.size_text(guard)
    return RowKernel(
        place, (), row, units, scene, threads, guarded or found.launch.grid[0], lifted=True, guarded=bool(guarded)
    )


def _has_type_parameters(kernel: KernelForm) -> bool:
    return any(kind in ("typename", "class") for kind, _ in kernel.template_parameters)


# ---------------------------------------------------------------- names made plain


def _without_thread_names(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with ``tid`` written as threadIdx.x, where it is declared so and never changed."""
    changed = names_changed(body)
    for s in body:
        if isinstance(s, Declare) and _is(s.init, THREAD) and s.name not in changed:
            left = tuple(other for other in body if other is not s)
            return _without_thread_names(substitute(left, {s.name: THREAD}))
    return body


def _with_row(body: tuple[Stmt, ...], kernel: KernelForm) -> tuple[Declare, tuple[Stmt, ...]]:
    """The declaration of the row's number, and the body with every blockIdx.x as that."""
    named = next((s for s in body if isinstance(s, Declare) and _is(s.init, BLOCK)), None)
    row = named or Declare("const int", fresh("row", taken_names(kernel) | BUILTINS), BLOCK)
    if not is_integer(row.type):
        raise Unclear
    left = tuple(s for s in body if s is not named)
    return row, rewrite(left, lambda e: Name(row.name) if e == BLOCK else None)


def _settled_pointers(body: tuple[Stmt, ...], kernel: KernelForm) -> tuple[Stmt, ...]:
    """A pointer parameter that is moved once, before it is used, as a pointer of its own from there on."""
    moves = [s.target.text for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Name)]
    pointers = {p.name: p.type for p in kernel.params if p.is_pointer}
    taken = set(taken_names(kernel))
    for at, s in enumerate(body):
        match s:
            case Assign(target=Name(text=text), op="+=", value=value) if text in pointers and moves.count(text) == 1:
                if text in names_mentioned(body[:at]) | names_in(value):
                    continue
                settled = fresh(f"own_{text}", taken)
                taken.add(settled)
                moved = Declare(pointers[text], settled, Binary("+", Name(text), value))
                body = (*body[:at], moved, *substitute(body[at + 1 :], {text: Name(settled)}))
    return body


def _is(expr: Expr | None, builtin: Member) -> bool:
    """Whether an expression is a builtin variable, casts left aside."""
    return expr is not None and without_casts(expr) == builtin


# ---------------------------------------------------------------- from a block to one thread


class _Lift:
    """Rewrites statements from the block's view to that of one thread that does it all.

    ``arrays``: shared arrays to their element types; ``totals``: what element 0 of each holds now."""

    def __init__(self, found: Target, threads: int, *, exact: bool) -> None:
        self.threads, self.kernel = threads, found.kernel
        declared = {s.name: s.type for s in walk_stmts(found.kernel.body) if isinstance(s, Declare)}
        # where results must be exact, nothing may be summed in another order than the block's
        self.types = declared
        self.in_order = {name for name, type_ in declared.items() if exact and not is_integer(type_)}
        self.combiners = Combiners.of(found, threads)
        self.arrays: dict[str, str] = {}
        self.totals: dict[str, Name] = {}
        self.scalars: set[str] = set()
        self.taken = set(taken_names(found.kernel)) | BUILTINS

    def level(self, body: Iterable[Stmt], parts: dict[str, Partial]) -> tuple[Stmt, ...]:
        """The statements lifted; ``parts`` (changed in place) are the names of which each thread holds its part only.

        Raises Unclear."""
        waiting, found = list(body), list[Stmt]()
        while waiting:
            s = waiting.pop(0)
            found += self._tree(s, waiting, parts) or self._one(s, found, parts)
        return tuple(found)

    def _one(self, s: Stmt, before: list[Stmt], parts: dict[str, Partial]) -> list[Stmt]:
        s = rewrite(s, self._element_zero)
        match s:
            case Comment():
                return [s]
            case ExprStmt(expr=Call(callee=Name(text=text))) if text in _BARRIERS:
                return []
            case Declare() if "__shared__" in s.qualifiers:
                return self._shared(s)
            case For() if self._strided(s):
                return [self._whole(s, before, parts)]
            case If() if (then := leaders_branch(s)) is not None:
                return self._leader(then, parts)
        match s:
            case If() | For() | While() | Scope():
                return [self._nested(s, parts)]
        new = self._plain(s, parts)
        return [] if isinstance(new, Assign) and new.op == "=" and new.value == new.target else [new]

    def _shared(self, s: Declare) -> list[Stmt]:
        if len(s.dims) == 1 and s.init is None:
            self.arrays[s.name] = s.type
            return []
        if s.dims or s.init is not None or "extern" in s.qualifiers:
            raise Unclear
        self.scalars.add(s.name)  # written by one thread or by all alike: a variable of the one that does it all
        return [replace(s, qualifiers=())]

    def _element_zero(self, e: Expr) -> Expr | None:
        match e:
            case Index(base=Name(text=text), index=index) if text in self.totals and integer(index) == 0:
                return self.totals[text]
        return None

    # ------------------------------------------------------------ statements

    def _strided(self, s: For) -> bool:
        """Whether the loop deals its iterations out to the threads of the block one by one."""
        step = self.combiners.constants.get(s.step.text) if isinstance(s.step, Name) else integer(s.step)
        by_block = _is(s.step, Member(Name("blockDim"), "x")) or step == self.threads
        return _is(s.start, THREAD) and s.relation == "<" and by_block

    def _whole(self, s: For, before: list[Stmt], parts: dict[str, Partial]) -> Stmt:
        """The loop over all iterations; what it folds is a part from here on."""
        folds = folds_of(s, self.kernel)
        for name, operator in folds.items():
            if operator in ("sum", "product") and name in self.in_order:
                raise Unclear
            again = parts.get(name)
            goes_on = again is not None and again.operator == operator and not again.leaders
            if not (goes_on if again is not None else starts_neutral(name, operator, before)):
                raise Unclear
        mentioned = names_mentioned([s])
        if mentioned & (parts.keys() - folds.keys() | self.arrays.keys()):
            raise Unclear
        for name, operator in folds.items():
            parts.setdefault(name, Partial(operator, start=start_number(name, before, self.types)))
        return replace(s, start=Literal("0"), step=Literal("1"), pragmas=())

    def _leader(self, then: tuple[Stmt, ...], parts: dict[str, Partial]) -> list[Stmt]:
        """What thread 0 does alone: it writes memory or shared variables, and may see what it alone holds."""
        own = {s.name for s in walk_stmts(then) if isinstance(s, Declare)}
        for s in walk_stmts(then):
            local = isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text not in own | self.scalars
            if local or isinstance(s, Return):
                raise Unclear
        unseen = {name for name, part in parts.items() if not part.leaders}
        if names_mentioned(then) & (unseen | {"threadIdx"}):
            raise Unclear
        body = self.level(then, {})
        return [Scope(body)] if own else list(body)

    def _nested(self, s: If | For | While | Scope, parts: dict[str, Partial]) -> Stmt:
        """A statement whose way all threads of the block go together, its inside lifted too."""
        head = replace(s, then=(), orelse=()) if isinstance(s, If) else replace(s, body=())
        sides, after = [], dict(parts)
        for side in (s.then, s.orelse) if isinstance(s, If) else (s.body,):
            inner = dict(parts)
            sides.append(self.level(side, inner))
            if any(inner.get(name) != part for name, part in parts.items()):
                raise Unclear  # what was a part before is something else afterwards, or not
            own = {d.name for d in walk_stmts(side) if isinstance(d, Declare)}
            after |= {name: part for name, part in inner.items() if name not in own}
        if names_mentioned([head]) & (after.keys() | self.arrays.keys()):
            raise Unclear
        parts |= after
        return replace(s, then=sides[0], orelse=sides[1]) if isinstance(s, If) else replace(s, body=sides[0])

    def _plain(self, s: Stmt, parts: dict[str, Partial]) -> Stmt:
        """A statement of every thread; calls that combine a part over the block are that part itself by now."""
        target, value = _given(s)
        seen: Stmt = s if target is None or value is None else ExprStmt(value)
        found = [self._combines(e, parts) for e in walk_exprs([s])]
        hidden = rewrite((seen,), lambda e: None if self._combines(e, parts) is None else Literal("0"))
        if names_mentioned(hidden) & (parts.keys() | self.arrays.keys()) or self.scalars & parts.keys():
            raise Unclear
        alone = False in found  # thread 0 alone has the result
        if alone and (target is None or value is None or self._combines(value, parts) is None):
            raise Unclear
        new = rewrite(s, lambda e: _argument(e) if self._combines(e, parts) is not None else None)
        if target is not None:
            parts.pop(target, None)
            if alone:
                parts[target] = Partial("", leaders=True)
        return new

    def _combines(self, e: Expr, parts: dict[str, Partial]) -> bool | None:
        """Whether an expression is a part combined over the block, for every thread or for thread 0 alone; None when
        it is neither."""
        match e:
            case Call(callee=Name(), args=(Name(text=text),)) if text in parts and not parts[text].leaders:
                return self.combiners.combines(e, parts[text])
        return None

    # ------------------------------------------------------------ trees in shared memory

    def _tree(self, s: Stmt, waiting: list[Stmt], parts: dict[str, Partial]) -> list[Stmt] | None:
        """``s[threadIdx.x] = part;`` and the statements after it that combine the array's elements into the first."""
        match s:
            case Assign(target=Index(base=Name(text=array), index=index), op="=", value=Name(text=part)):
                if array not in self.arrays or not _is(index, THREAD) or part not in parts or parts[part].leaders:
                    return None
            case _:
                return None
        length = 0
        while length < len(waiting) and _of_tree(waiting[length], array):
            length += 1
        run = (s, *waiting[:length])
        while run and isinstance(run[-1], Comment):
            length, run = length - 1, run[:-1]
        type_ = self.arrays[array]
        if not self.combiners.tree_combines(run, array, type_, part, parts[part].operator):
            raise Unclear
        del waiting[:length]
        total = fresh(f"{part}_total", self.taken)
        self.taken.add(total)
        self.totals[array] = Name(total)
        return [Declare(f"const {type_}", total, Name(part))]


def _given(s: Stmt) -> tuple[str | None, Expr | None]:
    """The variable that a statement gives a new value, and the value."""
    match s:
        case Declare(name=name, init=init, dims=()):
            return name, init
        case Assign(target=Name(text=text), op="=", value=value):
            return text, value
    return None, None


def _argument(e: Expr) -> Expr:
    assert isinstance(e, Call)
    return e.args[0]


def _of_tree(s: Stmt, array: str) -> bool:
    """Whether the statement belongs to the combining of an array: a barrier, or one that writes it."""
    match s:
        case Comment():
            return True
        case ExprStmt(expr=Call(callee=Name(text=text))) if text in _BARRIERS:
            return True
    return any(
        isinstance(inner, Assign) and isinstance(inner.target, Index) and base_name(inner.target) == array
        for inner in walk_stmts([s])
    )
