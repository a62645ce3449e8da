"""What statements do to memory: which buffers they read, write and update atomically, and at which index.

Anything that cannot be followed (a call of an unknown function, a pointer that goes somewhere else, verbatim
text) raises :class:`Unclear`; a recogniser that meets it offers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.accesses import Access, accesses_in, element
from fsr.analysis.aliasing import Groups, memories
from fsr.analysis.calls import ATOMICS, is_load
from fsr.analysis.functions import NO_FUNCTIONS, Functions
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, Index, KernelForm, Member, Name, Stmt, Unary
from fsr.source.walk import base_name, contains_opaque, nodes, walk_stmts


class Unclear(Exception):  # noqa: N818  # not an error: the recogniser gives up
    """Raised within the recognisers where the form does not tell what happens."""


@dataclass(frozen=True, slots=True)
class Pointers:
    """The pointers of a kernel: the memory each may point into and the type of its elements. ``functions``: the
    file's."""

    roots: Mapping[str, str]
    elements: Mapping[str, str]
    functions: Functions = NO_FUNCTIONS

    def root(self, expr: Expr) -> str | None:
        """The memory that a pointer expression points into; None when it is no known pointer."""
        match expr:
            case Name(text=text):
                return self.roots.get(text)
            case Cast(operand=inner):
                return self.root(inner)
            case Binary(op="+" | "-", left=left, right=right):
                return self.root(left) or self.root(right)
            case Unary(op="&", operand=Index(base=base)):
                return self.root(base)
        return None


def element_type(pointer_type: str) -> str:
    """``float`` for ``const float *``."""
    words = pointer_type.replace("*", " * ").split()
    return " ".join(w for w in words if w not in ("const", "volatile", "*", "__restrict__", "__restrict"))


def pointers(
    kernel: KernelForm, parameter_names: Mapping[str, str], aliasing: Groups = (), functions: Functions = NO_FUNCTIONS
) -> Pointers:
    """The pointers of a kernel. ``parameter_names`` maps its parameters to what the launch passes for them;
    ``functions`` are those of the file.

    Raises Unclear on a local pointer whose memory is not told by its initial value.
    """
    group = memories(aliasing)
    roots, elements = {}, {}
    for param in kernel.params:
        if param.is_pointer:
            if param.type.count("*") > 1 or "volatile" in param.type:
                raise Unclear
            passed = parameter_names.get(param.name, param.name)
            roots[param.name] = group.get(passed, passed)
            elements[param.name] = element_type(param.type)
    for stmt in walk_stmts(kernel.body):
        if isinstance(stmt, Declare) and "*" in stmt.type:
            known = Pointers(roots, elements)
            root = known.root(stmt.init) if stmt.init is not None else None
            if (
                root is None
                or stmt.dims
                or "volatile" in stmt.type
                or (stmt.name in roots and roots[stmt.name] != root)
            ):
                raise Unclear
            roots[stmt.name], elements[stmt.name] = root, element_type(stmt.type)
    return Pointers(roots, elements, functions)


def accesses(body: Iterable[Stmt], known: Pointers) -> list[Access]:
    """Every access that the statements, nested ones included, may make; what updates reads first, then writes.

    Raises Unclear where a pointer is used in any way but to reach an element.
    """
    body = tuple(body)
    if contains_opaque(body) or not all(_is_clear(node, known) for node in nodes(body)):
        raise Unclear
    found = [a for a in accesses_in(body, frozenset(known.roots)) if not _is_local(a, known)]
    mentions = sum(isinstance(node, Name) and node.text in known.roots for node in nodes(body))
    pointing = sum(_points(s, known) for s in walk_stmts(body))
    if any(a.array is None or a.index is None for a in found) or mentions != len(found) + pointing:
        raise Unclear
    return [
        replace(access, kind=kind, root=known.roots[access.array or ""])
        for access in found
        for kind in (("read", "write") if access.kind == "update" else (access.kind,))
    ]


def _is_clear(node: object, known: Pointers) -> bool:
    """Whether a node does nothing that could not be followed."""
    match node:
        case Call(callee, args):
            name = callee.text if isinstance(callee, Name) else ""
            load = is_load(node) and len(args) == 1
            return load or (name in ATOMICS and len(args) == 2) or known.functions.only_computes(name)
        case Member(_, _, True):
            return False
        case Unary("&", operand):
            return element(operand, frozenset(known.roots)) is not None
        case Assign(target=Name(text), op=op) if text in known.roots:
            return op in ("+=", "-=")
    return True


def _is_local(access: Access, known: Pointers) -> bool:
    """Whether an access is one of an array of the thread's own."""
    return access.array is None and isinstance(access.expr, Index) and base_name(access.expr) not in known.roots


def _points(s: Stmt, known: Pointers) -> bool:
    """Whether a statement mentions a pointer only to make or to move one."""
    match s:
        case Declare(name=name, init=init):
            return init is not None and name in known.roots
        case Assign(target=Name(text)):
            return text in known.roots
    return False
