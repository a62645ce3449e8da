"""The standard library's limits of numbers as what they are: ``INFINITY`` for the float's infinity."""

from __future__ import annotations

from fsr.source.form import Binary, Call, Expr, Literal, Name, Unary
from fsr.source.mapping import map_exprs
from fsr.source.walk import Block

_LARGEST, _MOST = Literal("3.402823466e+38f"), Literal("2147483647")
_LEAST = Binary("-", Unary("-", _MOST), Literal("1"))
_SHORT: dict[str, Expr] = {
    "numeric_limits<float>::infinity": Name("INFINITY"),
    "numeric_limits<float>::max": _LARGEST,
    "numeric_limits<float>::lowest": Unary("-", _LARGEST),
    "numeric_limits<int>::max": _MOST,
    "numeric_limits<int>::min": _LEAST,
    "numeric_limits<int>::lowest": _LEAST,
}  # of the same type and value, whatever a file includes


def with_short_limits(body: Block) -> Block:
    """Statements with such calls by what they are: what a maximum begins with is told by its name then."""

    def short(e: Expr) -> Expr:
        match e:
            case Call(Name(text), ()) if "numeric_limits<" in text:
                return _SHORT.get(text[text.index("numeric_limits") :].replace(" ", ""), e)
        return e

    return map_exprs(body, short)
