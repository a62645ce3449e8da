"""What the functions and macros of a translation unit do: which only compute, which concern one thread alone, and
which speak of the place of a thread or hide something."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fsr.analysis.braces import with_results_shown
from fsr.analysis.calls import CONSTANTS, COOPERATES, INTO, OF_BYTES, is_atomic, is_load, is_pure_name
from fsr.analysis.inline_ptx import only_computes
from fsr.errors import FsrError
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Param,
    Return,
    Scope,
    Unary,
    While,
)  # fmt: skip
from fsr.source.items import Item, parse_items
from fsr.source.macros import Macro, macros
from fsr.source.names import words
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import uncommented
from fsr.source.walk import BUILTINS, base_name, kernel_names, opaque_names, walk_expr, walk_exprs, walk_stmts

_WORDS = CONSTANTS | frozenset(["float", "double", "int", "unsigned", "long", "size_t", "sizeof", "const"])
_ASM = frozenset(["asm", "volatile", "__asm__", "__volatile__"])


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of a file, those of its records by ``Record::name``. ``own``: every name it defines, which CUDA's
    function of that name is not meant by; ``pure``: those of them whose value depends on their arguments alone;
    ``local``: those, and the ones that may besides read and write through pointers that they are given."""

    own: frozenset[str] = frozenset()
    pure: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()

    def builtin(self, name: str) -> bool:
        """Whether the name is that of a function of CUDA's that only computes."""
        return name not in self.own and is_pure_name(name)

    def only_computes(self, name: str) -> bool:
        """Whether a call of the name computes a value from its arguments and does nothing else."""
        return self._is_in(self.pure, name) or self.builtin(name)

    def _is_in(self, names: frozenset[str], name: str) -> bool:
        """Whether a function is one of them, called by its own name, its record's or a namespace's."""
        member = _of_record(name)
        return member in names or (f"{member}#0" not in self.own and own_name(name) in names)

    def calls_builtins(self, e: Expr) -> bool:
        """Whether every call within the expression is of a function of CUDA's that only computes."""
        return all(
            isinstance(x.callee, Name) and self.builtin(x.callee.text) for x in walk_expr(e) if isinstance(x, Call)
        )

    def stays_in_thread(self, e: Expr, types: frozenset[str] = frozenset()) -> bool:
        """Whether an expression, if it is a call, concerns the calling thread alone: an atomic, a load, or a function
        that computes or is local, or a conversion to one of ``types``. What is no call does."""
        if not isinstance(e, Call) or is_atomic(e) or is_load(e):
            return True
        if not isinstance(e.callee, Name):
            return False
        name = e.callee.text
        known = name in types or self._is_in(self.local, name)
        return known or self.builtin(name) or (name in INTO | OF_BYTES and name not in self.own)


NO_FUNCTIONS = Functions()


@lru_cache(maxsize=64)
def functions_of(source: str) -> Functions:
    """The functions of a translation unit, device functions and function-like macros of one expression."""
    members = _of_records(source)
    numbered = {f"{name}#{n}": form for name, forms in members.items() for n, form in enumerate(forms)}
    shown = {name: with_results_shown(form, source) for name, form in parse_device_functions(source).items()}
    defined = {**shown, **numbered}
    written = {**defined, **_macro_functions(source)}
    own = frozenset(written) | {m.name for m in macros(source)}
    pure = _pure(_shown(written, source), own, _type_parameters(defined.values()))
    alone = {name for name, form in _shown(defined, source).items() if _is_local(form)} | pure
    while True:
        found = Functions(own, pure, frozenset(alone))
        steady = {n for n in alone if n in pure or all(found.stays_in_thread(e) for e in walk_exprs(defined[n].body))}
        if steady == alone:
            return Functions(own, *(names | _whole(members, names) for names in (pure, frozenset(alone))))
        alone = steady


def _whole(members: Mapping[str, Sequence[KernelForm]], names: frozenset[str]) -> frozenset[str]:
    """The functions of records of which every specialisation is among the names."""
    return frozenset(name for name, forms in members.items() if all(f"{name}#{n}" in names for n in range(len(forms))))


_ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
_TEMPLATE_ARGUMENTS = re.compile(r"<[^<>]*>")


def _of_record(name: str) -> str:
    """``Record::name`` of a name with namespaces and template arguments; a name without any as it is."""
    return "::".join(plain_name(name).split("::")[-2:])


def _of_records(source: str) -> Mapping[str, list[KernelForm]]:
    """The functions that stand in records, by ``Record::name``: one of each specialisation that has it."""
    found = dict[str, list[KernelForm]]()
    try:
        records = [i for item in parse_items(source) for i in item.walk() if i.kind == "record" and len(i.names) == 1]
    except FsrError:
        return found
    plain = [m for m in macros(source) if m.params is None and "\n" not in m.body]
    defines = "".join(f"#define {m.name} {m.body}\n" for m in plain)  # qualifiers may go by their names
    for record in records:
        text = source[record.start : record.end]
        inside = defines + text[text.find("{") + 1 : text.rfind("}")]
        for name, form in parse_device_functions(_ACCESS.sub("", inside)).items():
            found.setdefault(f"{record.names[0]}::{name}", []).append(form)
    return found


def _shown(functions: Mapping[str, KernelForm], source: str) -> Mapping[str, KernelForm]:
    """Those whose text hides nothing behind a macro."""
    return {name: form for name, form in functions.items() if not kernel_names(form) & hiding_macros(source)}


def _type_parameters(forms: Iterable[KernelForm]) -> frozenset[str]:
    """Types that templates are given: a call of one is a conversion."""
    found = (one for form in forms for one in form.template_parameters)
    return frozenset(name for word, name in found if word in ("typename", "class"))


def _pure(
    functions: Mapping[str, KernelForm], own: frozenset[str], types: frozenset[str] = frozenset()
) -> frozenset[str]:
    pure = types - own
    while True:
        known = Functions(own, pure)
        more = {n for n, f in functions.items() if n not in pure and _is_pure(f, known)}
        if not more:
            return pure
        pure |= more


@lru_cache(maxsize=64)
def hiding_macros(source: str) -> frozenset[str]:
    """Object-like macros that stand for more than a constant; those that name only other constants are none."""
    bodies = {m.name: opaque_names(m.body) for m in macros(source) if m.params is None}
    hiding = {n for n, used in bodies.items() if used - _WORDS - set(bodies)}
    while True:
        more = {n for n, used in bodies.items() if n not in hiding and used & hiding}
        if not more:
            return frozenset(hiding)
        hiding |= more


def _macro_functions(source: str) -> Mapping[str, KernelForm]:
    """Function-like macros that are one expression, as functions."""
    return parse_device_functions("\n".join(_as_function(m) for m in macros(source) if m.params is not None))


def _as_function(macro: Macro) -> str:
    if not macro.body or any(c in macro.body for c in ";{}#") or "..." in (macro.params or ()):
        return ""
    typed = ", ".join(f"float {p}" for p in macro.params or ())
    return f"__device__ float {macro.name}({typed}) {{ return {macro.body}; }}"


def _is_pure(function: KernelForm, known: Functions) -> bool:
    if any("*" in p.type or not p.name or ("&" in p.type and not _read_only(p)) for p in function.params):
        return False
    local = {p.name for p in function.params}
    for stmt in walk_stmts(function.body):
        if not isinstance(stmt, Declare | Assign | ExprStmt | If | For | While | Scope | Return | Comment):
            return False
        if isinstance(stmt, Declare):
            if "*" in stmt.type or "&" in stmt.type or set(stmt.qualifiers) - {"constexpr"}:
                return False
            local.add(stmt.name)
        if isinstance(stmt, For) and stmt.type is not None:
            local.add(stmt.var)
    changed = {base_name(s.target) for s in walk_stmts(function.body) if isinstance(s, Assign)}
    return changed <= local and all(_is_plain(e, local, known) for e in walk_exprs(function.body))


def _read_only(param: Param) -> bool:
    """Whether a parameter is a reference through which nothing is written."""
    return param.type.startswith("const ") and param.type.count("&") == 1


def _is_plain(expr: Expr, local: set[str], known: Functions) -> bool:
    match expr:
        case OpaqueExpr(text) if text.startswith("asm") and only_computes(text):
            return opaque_names(text) - _ASM <= local
        case OpaqueExpr() | Unary(op="*" | "&") | Member(arrow=True):
            return False
        case Call(callee=callee):
            return isinstance(callee, Name) and known.only_computes(callee.text)
        case Index(base=base):
            return isinstance(base, Name | Index)
        case Name(text=text):
            constant = text in CONSTANTS or (text.isupper() and text not in BUILTINS)
            return text in local or constant or known.only_computes(text)
    return True


def _is_local(form: KernelForm) -> bool:
    """Whether a function neither speaks of the thread's place, nor holds shared or static variables or statements that
    could not be read."""
    for s in walk_stmts(form.body):
        if isinstance(s, OpaqueStmt) or (isinstance(s, Declare) and {"__shared__", "static"} & set(s.qualifiers)):
            return False
    for e in walk_exprs(form.body):
        match e:
            case Name(text) if text in BUILTINS:
                return False
            case OpaqueExpr(text) if text.startswith("asm") and only_computes(text):
                continue
            case OpaqueExpr(text) if "(" in text or "asm" in opaque_names(text) or opaque_names(text) & BUILTINS:
                return False
    return True


@lru_cache(maxsize=64)
def names_defined(source: str, kind: str = "") -> frozenset[str]:
    """Names of the functions, types and macros that stand in a text, or of one kind of items; none where it does not
    scan."""
    try:
        items = [i for item in parse_items(source) for i in item.walk()]
    except FsrError:
        return frozenset()
    return frozenset(name for i in items if kind in ("", i.kind) for name in i.names)


def plain_name(name: str) -> str:
    """A function's name without template arguments: ``ns::f`` of ``ns::f<T<3>, 4>``."""
    while name != (plain := _TEMPLATE_ARGUMENTS.sub("", name)):
        name = plain
    return name


def own_name(name: str) -> str:
    """A function's name without the file's namespaces; that of a library's as it is."""
    return name if name.startswith(("std::", "cuda::", "::")) else name.rsplit("::", 1)[-1]


def record_of(name: str) -> str:
    """The record of a function's name, ``Record`` of ``ns::Record<T>::name``; or a namespace, or nothing."""
    return _of_record(name).rpartition("::")[0]


@lru_cache(maxsize=64)
def thread_aware(source: str) -> frozenset[str]:
    """Names of macros, functions and types whose use depends on which thread runs it, directly or through others: code
    that calls them cannot be moved to another thread. Raises nothing: text that does not scan gives every name."""
    return speaking(source, lambda used: bool(used & BUILTINS) or any(map(COOPERATES.search, used)))


ASM = frozenset(("asm", "__asm__", "__asm"))
_REGISTERS = frozenset((  # special ones of PTX
    "tid", "ntid", "ctaid", "nctaid", "warpid", "nwarpid", "smid", "clusterid", "cluster_ctaid", "cluster_ctarank",
))  # fmt: skip


def speaking(source: str, speaks: Callable[[frozenset[str]], bool]) -> frozenset[str]:
    """Names of macros, functions and types whose words speak of something, directly or through others, or whose PTX
    speaks of a thread's place in its block or grid. Text that does not scan gives every name."""
    try:
        items, code = [i for item in parse_items(source) for i in item.walk() if i.names], uncommented(source)
    except FsrError:
        return words(source)
    uses = [(i.names, words(code[i.start : i.end]) - set(i.names)) for i in items if not i.children]
    found = {n for own, used in uses if speaks(used) or (used & ASM and used & _REGISTERS) for n in own}
    # What a device function calls so is a variable of its own: it cannot call a kernel.
    kernels = _kernels(items) if "<<<" not in code else frozenset()
    while True:
        more = {n for own, used in uses if used & (found - kernels) for n in own}
        if more <= found:
            return frozenset(found)
        found |= more


def _kernels(items: Sequence[Item]) -> frozenset[str]:
    """Names of kernels that are those of nothing else."""
    named = {here: {n for i in items if ("__global__" in i.head) == here for n in i.names} for here in (True, False)}
    return frozenset(named[True] - named[False])
