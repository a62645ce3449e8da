"""Functions that exchange what two references, or pointers, lead to, and do nothing else."""

from __future__ import annotations

from fsr.source.form import Assign, Binary, Comment, Declare, Expr, Index, KernelForm, Literal, Name, Param, Unary


def exchanges(function: KernelForm) -> bool:
    """Whether a function of two parameters does that by way of a variable."""
    if len(function.params) != 2:
        return False
    match [s for s in function.body if not isinstance(s, Comment)]:
        case [Declare(_, held, kept, (), ()), Assign(one, "=", other), Assign(last, "=", Name(put))]:
            params = [_param_of(e, function) for e in (one, other)]
            return (kept, last, put) == (one, other, held) and None not in params and params[0] != params[1]
    return False


def _param_of(e: Expr, function: KernelForm) -> Param | None:
    """The parameter of which an expression is what it leads to."""
    match e:
        case Name(name):
            return next((p for p in function.params if p.name == name and "&" in p.type and "*" not in p.type), None)
        case Unary("*", Name(name)) | Index(Name(name), Literal("0")):
            return next((p for p in function.params if p.name == name and p.type.count("*") == 1), None)
    return None


def pointed(arg: Expr, param: Param) -> Expr | None:
    """What a parameter that is a reference, or a pointer, leads to, by its argument; None where that is not said."""
    if "&" in param.type:
        return arg
    match arg:
        case Unary("&", operand):
            return operand
        case Binary("+", base, index):
            return Index(base, index)
        case Name():
            return Index(arg, Literal("0"))
    return None
