"""The statements of a device function as one call has them: of a template the one that the call means, with the call's
arguments for its parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.types import bare
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    Param,
    Scope,
    Stmt,
    Unary,
    While,
)  # fmt: skip
from fsr.source.mapping import map_exprs, map_stmts, substitute
from fsr.source.walk import (
    Block,
    fresh,
    kernel_names,
    names_assigned,
    names_in,
    opaque_names,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What is known where a call stands. ``types``: of names, as declared; ``variables``: their declarations."""

    types: Mapping[str, str]
    variables: Mapping[str, Declare]

    def type_of(self, e: Expr) -> str | None:
        """The type of an argument, an array's that of a pointer; None where it cannot be told."""
        match e:
            case Name(text) if text in self.types:
                dims = self.variables[text].dims if text in self.variables else ()
                return f"{self.types[text]} *" if len(dims) == 1 else None if dims else self.types[text]
            case Binary("+", (Name() | Binary()) as left, _):
                found = self.type_of(left)
                return found if found is not None and "*" in found else None
            case Unary("&", operand):
                found = self.type_of(operand)
                return None if found is None else f"{found} *"
            case Index(Name() as base, _):
                found = self.type_of(base)
                return None if found is None or found.count("*") != 1 else found.replace("*", "")
            case Literal(text) if text.isdigit():
                return "int"
            case Cast(type_) if "&" not in type_:
                return type_
        return None


def instance(function: KernelForm, call: Call, told: Told) -> tuple[KernelForm, Mapping[str, str]] | None:
    """The function that a call means, of a template the one of the call's arguments, and what its parameters stand
    for; None where that cannot be told."""
    if len(call.args) != len(function.params):
        return None
    names = function.template_parameters
    if len(call.template_args) > len(names):
        return None
    words = {name: text for (_, name), text in zip(names, call.template_args, strict=False)}
    for kind, name in names[len(call.template_args) :]:
        if kind not in ("typename", "class"):
            return None
        found = {_matched(p.type, name, told.type_of(a)) for p, a in zip(function.params, call.args, strict=True)
                 if re.search(rf"\b{name}\b", p.type)}  # fmt: skip
        if len(found) != 1 or None in found:
            return None
        words[name] = str(found.pop())
    if not all(re.fullmatch(r"[\w: ]+", text) for text in words.values()):
        return None
    params = tuple(replace(p, type=retyped_text(p.type, words)) for p in function.params)
    return replace(function, params=params, body=_retyped(function.body, words), template=None), words


def _matched(pattern: str, name: str, type_: str | None) -> str | None:
    """What a template parameter is where a parameter's type stands for an argument's."""
    if type_ is None or "auto" in type_:
        return None
    stars, given = pattern.count("*"), type_.count("*")
    if bare(pattern) != name or given != stars:
        return None
    return bare(type_)


def retyped_text(text: str, words: Mapping[str, str]) -> str:
    """A type, or a pragma, with template parameters replaced."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: words.get(m[0], m[0]), text) if words else text


def _retyped(body: Block, words: Mapping[str, str]) -> Block:
    if not {n: t for n, t in words.items() if n != t}:
        return body

    def statement(s: Stmt) -> Stmt:
        match s:
            case Declare():
                return replace(s, type=retyped_text(s.type, words))
            case For():
                pragmas = tuple(retyped_text(p, words) for p in s.pragmas)
                return replace(s, type=None if s.type is None else retyped_text(s.type, words), pragmas=pragmas)
            case While():
                return replace(s, pragmas=tuple(retyped_text(p, words) for p in s.pragmas))
        return s

    def expression(e: Expr) -> Expr:
        match e:
            case Name(text) if text in words:
                return Literal(words[text]) if words[text].isdigit() else Name(words[text])
            case Cast():
                return replace(e, type=retyped_text(e.type, words))
            case Call(template_args=(_, *_)):
                return replace(e, template_args=tuple(retyped_text(t, words) for t in e.template_args))
        return e

    return map_stmts(body, statement, expression)


def body_of_call(kernel: KernelForm, call: Call, function: KernelForm, types: Mapping[str, str]) -> Scope | None:
    """A function's statements with the arguments of a call: what it never changes and is of its parameter's type stands
    as it is, all others are variables. None where a reference is to more than a variable."""
    changed, taken = names_assigned(function.body), set(kernel_names(kernel)) | kernel.macro_words
    within = kernel_names(function)  # of which a new name for one must differ, too
    moved = _moved(function.body)
    given = list(zip(function.params, call.args, strict=True))
    references = {a.text for p, a in given if "&" in p.type and isinstance(a, Name)}
    own: dict[str, Expr] = {}
    heads: list[Stmt] = []
    for param, arg in given:
        if "&" in param.type:
            if not _steady(arg, changed | references):
                return None
            own[param.name] = arg
        elif param.name not in (moved if param.is_pointer else changed) and _stands(param, arg, types, references):
            own[param.name] = arg
        else:
            name = fresh(param.name, taken if param.name not in taken else taken | within)
            taken.add(name)
            own[param.name] = Name(name)
            heads.append(Declare(param.type, name, arg))
    for s in walk_stmts(function.body):
        local = s.name if isinstance(s, Declare) else s.var if isinstance(s, For) and s.type is not None else None
        if local is not None and local in taken and local not in own:
            own[local] = Name(fresh(local, taken | within))
            taken.add(own[local].text)  # type: ignore[union-attr]
    return Scope((*heads, *map_exprs(substitute(function.body, own), _direct_access)))


def _moved(body: Block) -> set[str]:
    """The variables that are given another value, whatever is written through them."""
    targets = {s.target.text for s in walk_stmts(body) if isinstance(s, Assign) and isinstance(s.target, Name)}
    taken = {e.operand.text for e in walk_exprs(body)
             if isinstance(e, Unary) and e.op == "&" and isinstance(e.operand, Name)}  # fmt: skip
    hidden = {name for e in walk_exprs(body) if isinstance(e, OpaqueExpr) for name in opaque_names(e.text)}
    return targets | taken | hidden | {s.var for s in walk_stmts(body) if isinstance(s, For)}


def _steady(arg: Expr, changed: Collection[str]) -> bool:
    """Whether an argument names the same place all along."""
    match arg:
        case Name():
            return True
        case Member(base, _, False):
            return _steady(base, changed)
        case Index(base, index):
            plain = all(isinstance(e, Name | Literal | Binary) for e in walk_expr(index))
            return _steady(base, changed) and plain and not names_in(index) & set(changed)
    return False


def _stands(param: Param, arg: Expr, types: Mapping[str, str], references: Collection[str]) -> bool:
    """Whether an argument may stand for a parameter that never changes."""
    match arg:
        case Name(text):
            known = bare(types.get(text, "")) == bare(param.type) or param.is_pointer
            return known and text not in references
        case Unary("&", Name(text)):
            return text not in references
        case Literal(text):
            return text.isdigit() and bare(param.type) == "int"
    return False


def _direct_access(e: Expr) -> Expr:
    """``*&v`` and ``(&v)[0]`` as ``v``, ``(&v)->x`` as ``v.x``."""
    match e:
        case Member(Unary("&", inner), name, True):
            return Member(inner, name)
        case Unary("*", Unary("&", inner)) | Index(Unary("&", inner), Literal("0")):
            return inner
    return e
