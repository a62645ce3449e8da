"""What is known around a loop: the memory behind its pointers, what is touched, what is the same in all its turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fsr.analysis.accesses import Access, accesses_in
from fsr.analysis.calls import is_load
from fsr.source.emit import emit_expr
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, For, Index, Member, Name, OpaqueExpr, Unary
from fsr.source.integers import integer_of
from fsr.source.walk import base_name, integer, names_in, names_written, variables, walk_expr, walk_stmts
from fsr.transform.target import Target

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Scene:
    """``roots``: the memory behind each pointer and shared array; ``shared``: of it, what a block shares; ``inside``,
    ``outside``: accesses in the loop and elsewhere, with their roots, those of arrays of the thread's own left out;
    ``changing``: names that a turn changes."""

    target: Target
    loop: For
    roots: Mapping[str, str]
    shared: frozenset[str]
    inside: tuple[Access, ...]
    outside: tuple[Access, ...]
    changing: frozenset[str]
    _values: dict[tuple[object, ...], int | None] = field(default_factory=dict, compare=False)

    def same(self, e: Expr, stepping: frozenset[str] = _NONE) -> bool:
        """Whether an expression is the same in all turns, but for the variables ``stepping``."""
        whole = self.target.known.expand(e)
        written = {a.root for a in self.inside if a.writes} | self.shared
        if names_in(whole) & (self.changing - stepping):
            return False
        for x in walk_expr(whole):
            match x:
                case OpaqueExpr() | Member(_, _, True):
                    return False
                case Call() if not (is_load(x) or self.target.functions.calls_builtins(Call(x.callee, ()))):
                    return False
                case Name(text) if self.roots.get(text) in written:
                    return False
        return True

    def value(self, e: Expr, known: Mapping[str, int]) -> int | None:
        """The number that an integer expression is, with the values of some names."""
        if (number := integer(e)) is not None:
            return number
        key = (e, *((n, known[n]) for n in sorted(names_in(e)) if n in known))
        if key not in self._values:
            whole = self.target.known.expand(e)
            plain = not any(isinstance(x, Index | Call | OpaqueExpr | Member) for x in walk_expr(whole))
            names = {**self.target.constants, **known}
            self._values[key] = integer_of(emit_expr(whole), names) if plain else None
        return self._values[key]


def scene_of(target: Target, loop: For) -> Scene | None:
    """The scene of a loop; None where a pointer's memory is not told, or an access is not."""
    roots = _roots(target)
    if roots is None:
        return None
    body = target.kernel.body
    found = accesses_in(body, frozenset(roots) | target.kernel.by_reference)
    local = {s.name for s in walk_stmts(body) if isinstance(s, Declare) and s.name not in roots}
    plain = {p.name for p in target.kernel.params} - set(roots)
    kept = list[Access]()
    for a in found:
        if a.array in target.kernel.by_reference:
            continue
        root = roots.get(a.array or "")
        if root is None:
            name = base_name(a.expr)
            if name is None or name in plain or (name not in local and a.writes):
                return None
            if name in local:
                continue
            root = name  # of the file
        kept.append(replace(a, root=root))
    mine = {id(s) for s in walk_stmts((loop,))}
    shared = frozenset(s.name for s in walk_stmts(body) if isinstance(s, Declare) and "__shared__" in s.qualifiers)
    changing = names_written(loop.body) | set(variables(loop.body)) | {loop.var}
    changing -= {n for n in roots if not _is_set(n, loop)}
    inside = tuple(a for a in kept if id(a.statement) in mine)
    outside = tuple(a for a in kept if id(a.statement) not in mine)
    return Scene(target, loop, roots, shared, inside, outside, frozenset(changing))


def _is_set(name: str, loop: For) -> bool:
    """Whether a pointer itself gets another value within the loop."""
    return any(
        (isinstance(s, Declare) and s.name == name) or (isinstance(s, Assign) and s.target == Name(name))
        for s in walk_stmts(loop.body)
    )


def _roots(target: Target) -> dict[str, str] | None:
    """The memory behind every pointer and shared array of a kernel; None where that of one is not told."""
    found = {p.name: p.name for p in target.kernel.params if p.is_pointer}
    if any(p.type.count("*") > 1 or "volatile" in p.type for p in target.kernel.params):
        return None
    own = {*(s.name for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)), *found}
    for s in walk_stmts(target.kernel.body):
        if not isinstance(s, Declare):
            continue
        if "__shared__" in s.qualifiers and not s.type.endswith("*"):
            found[s.name] = s.name
        elif "*" in s.type:
            root = None if s.init is None else _root(s.init, found, own)
            if root is None or s.dims or s.type.count("*") > 1 or found.get(s.name, root) != root:
                return None
            found[s.name] = root
    return found


def _root(e: Expr, found: Mapping[str, str], own: set[str]) -> str | None:
    match e:
        case Name(text):
            return found.get(text) if text in own else text
        case Cast(_, operand):
            return _root(operand, found, own)
        case Binary("+", left, right):
            return _root(left, found, own) or _root(right, found, own)
        case Binary("-", left, _):
            return _root(left, found, own)
        case Unary("&", Index(base)):
            return _root(base, found, own)
        case Index(base) if isinstance(base, Name) and found.get(base.text) == base.text:
            return base.text  # a row of a shared array
    return None
