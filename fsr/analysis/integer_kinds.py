"""The integer types that C++ gives to expressions, by promotions and the usual arithmetic conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fsr.analysis.calls import is_load
from fsr.analysis.types import aliases, bare, resolved
from fsr.analysis.word_values import Kind, kind_of, literal
from fsr.source.constants import constant_variables
from fsr.source.form import (
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
    Ternary,
    Unary,
)  # fmt: skip
from fsr.source.walk import BUILTINS, walk_stmts

INT = Kind()


def alike(a: Kind, b: Kind) -> Kind:
    """The type in which an operator has two operands."""
    wide = max(a.bits, b.bits, INT.bits)
    return Kind(wide, all(k.signed for k in (a, b) if k.bits == wide))


@dataclass(frozen=True, slots=True)
class IntegerKinds:
    """``types``: of names, as declared, of an array its elements'; ``dims``: how many extents arrays have; ``inits``:
    the values of those that have their type from these; ``aliases``: of types; ``returned``: the type that a function
    of the file returns, as written, None where that is not known."""

    types: Mapping[str, str]
    dims: Mapping[str, int]
    inits: Mapping[str, Expr]
    aliases: Mapping[str, str]
    returned: Callable[[str], str | None] = lambda _: None

    def of(self, e: Expr) -> Kind | None:
        """An expression's type; None where it is no integer, or not known."""
        match e:
            case Literal():
                value = literal(e)
                return None if value is None else value.kind
            case Name() | Index() | Unary("*"):
                return self._element(e)
            case Member(Name(text), _) if text in BUILTINS:
                return Kind(32, False)
            case Cast(type_, _):
                return self.spelt(type_)
            case Unary("!") | Binary("<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||"):
                return INT
            case Unary("-" | "+" | "~", left) | Binary("<<" | ">>", left, _):
                return self._both(left, left)
            case Binary("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", left, right) | Ternary(_, left, right):
                return self._both(left, right)
            case Call(_, (pointer,)) if is_load(e):
                return self._element(Unary("*", pointer))
            case Call(Name(name), args):
                conversion = self.spelt(name) if len(args) == 1 else None
                found = conversion or self.spelt(self.returned(name) or "")
                least = name in ("min", "max") and len(args) == 2 and self.of(args[0]) == self.of(args[1])
                return self._both(*args) if found is None and least else found
        return None

    def spelt(self, type_: str) -> Kind | None:
        """The type of a spelling; None where it is no integer's."""
        return None if "*" in type_ else kind_of(resolved(type_, self.aliases))

    def _both(self, left: Expr, right: Expr) -> Kind | None:
        a, b = self.of(left), self.of(right)
        return None if a is None or b is None else alike(a, b)

    def _element(self, e: Expr) -> Kind | None:
        depth = 0
        while not isinstance(e, Name):
            match e:
                case Unary("*", Unary("&", e)):
                    return self.of(e)
                case Index(e, _) | Unary("*", e):
                    depth += 1
                case _:
                    return None
        type_ = self.types.get(e.text, "")
        if e.text in self.inits and type_:
            return None if depth else self.of(self.inits[e.text])
        levels = type_.count("*") + self.dims.get(e.text, 0)
        return kind_of(resolved(type_, self.aliases)) if type_ and levels == depth else None


def kinds_of(form: KernelForm, source: str, returned: Callable[[str], str | None] = lambda _: None) -> IntegerKinds:
    """The types of expressions in a function of a text; of two variables by one name and of different types nothing is
    known. ``returned``: of functions of the text."""
    declared, inits = [(p.name, p.type, 0) for p in form.params], dict[str, Expr]()
    for s in walk_stmts(form.body):
        if isinstance(s, Declare):
            declared.append((s.name, s.type, len(s.dims)))
            if bare(s.type) == "auto" and s.init is not None and "*" not in s.type:
                declared[-1] = (s.name, f"auto {s.name in inits}", 0)
                inits[s.name] = s.init
        elif isinstance(s, For) and s.type is not None:
            declared.append((s.var, s.type, 0))
    types, dims = dict[str, str](), dict[str, int]()
    for name, type_, extents in declared:
        same = types.get(name, type_) == type_ and dims.get(name, extents) == extents
        types[name], dims[name] = type_ if same else "", extents
    everywhere = {v.name: v.type for v in constant_variables(source) if not v.extents}
    own = {name for _, name in form.template_parameters}
    known = {name: type_ for name, type_ in aliases(source).items() if name not in own}
    return IntegerKinds({**everywhere, **types}, dims, inits, known, returned)
