"""Expressions of a syntax tree as the loop-nest form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fsr.source.form import Binary, Call, Cast, Expr, Index, Literal, Member, Name, OpaqueExpr, Ternary, Unary

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERALS = frozenset(
    ["number_literal", "char_literal", "string_literal", "true", "false", "null", "raw_string_literal"]
)
_NAMES = frozenset(["identifier", "qualified_identifier", "primitive_type", "type_identifier", "this"])
_CASTS = frozenset(["static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"])
# The low 24 bits of each: of what a launch tells, all that there are. Faster than a product on GPUs before 2010 alone.
_PRODUCTS = frozenset([Name("__umul24"), Name("__mul24")])
_LAUNCH = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim"])
_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"])
_BINARY = _ARITHMETIC | frozenset(["<", ">", "<=", ">=", "==", "!=", "&&", "||", ","])


def expression(data: bytes, node: Node) -> Expr:
    """The expression of a node of the tree of ``data``; what has no form comes back as OpaqueExpr."""
    if not node.has_error:
        if node.type in _NAMES:
            return Name(_text(data, node))
        if node.type in _LITERALS:
            text = _text(data, node)  # the grammar takes a sign into the number
            return Unary(text[0], Literal(text[1:].lstrip())) if text[0] in "+-" else Literal(text)
        reader = _READERS.get(node.type)
        found = None if reader is None else reader(data, node)
        if found is not None:
            return found
    return OpaqueExpr(_text(data, node))


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _field(data: bytes, node: Node, name: str) -> Expr | None:
    child = node.child_by_field_name(name)
    return None if child is None else expression(data, child)


def _operator(data: bytes, node: Node) -> str:
    child = node.child_by_field_name("operator")
    return "" if child is None else _text(data, child)


def _parenthesized(data: bytes, node: Node) -> Expr | None:
    inner = [c for c in node.named_children if c.type != "comment"]
    return expression(data, inner[0]) if len(inner) == 1 else None


def _binary(data: bytes, node: Node) -> Expr | None:
    left, right, op = _field(data, node, "left"), _field(data, node, "right"), _operator(data, node)
    return Binary(op, left, right) if left is not None and right is not None and op in _BINARY else None


def _comma(data: bytes, node: Node) -> Expr | None:
    left, right = _field(data, node, "left"), _field(data, node, "right")
    if left is None or right is None:
        return None
    match right:  # the grammar nests to the right, the language to the left
        case Binary(",", first, last):
            return Binary(",", Binary(",", left, first), last)
    return Binary(",", left, right)


def _unary(data: bytes, node: Node) -> Expr | None:
    operand, op = _field(data, node, "argument"), _operator(data, node)
    if operand is not None and op == "(":  # a cast to a type that the grammar does not know: see blanks.readable
        start = node.start_byte + 1
        return Cast(" ".join(data[start : data.index(b")", start)].decode("utf-8", "replace").split()), operand)
    return Unary(op, operand) if operand is not None and op in ("-", "+", "!", "~", "*", "&") else None


def _conditional(data: bytes, node: Node) -> Expr | None:
    parts = [_field(data, node, n) for n in ("condition", "consequence", "alternative")]
    test, yes, no = parts
    return Ternary(test, yes, no) if test is not None and yes is not None and no is not None else None


def _call(data: bytes, node: Node) -> Expr | None:
    callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if callee is None or arguments is None or arguments.type != "argument_list":
        return None
    args = tuple(expression(data, a) for a in arguments.named_children if a.type != "comment")
    if callee.type == "template_function":
        name = callee.child_by_field_name("name")
        templates = _template_args(data, callee)
        if name is None:
            return None
        if _text(data, name) in _CASTS and len(args) == 1 and len(templates) == 1:
            return Cast(templates[0], args[0], _text(data, name))
        return Call(Name(_text(data, name)), args, templates)
    method = callee.child_by_field_name("field") if callee.type == "field_expression" else None
    if method is not None and method.type == "template_method":
        base, name = _field(data, callee, "argument"), method.child_by_field_name("name")
        if base is None or name is None:
            return None
        member = Member(base, _text(data, name), _operator(data, callee) == "->")
        return Call(member, args, _template_args(data, method))
    called = expression(data, callee)
    if called in _PRODUCTS and len(args) == 2 and all(map(_of_launch, args)):
        return Binary("*", *args)
    return Call(called, args)


def _of_launch(e: Expr) -> bool:
    """Whether it is an id, or an extent, of a launch."""
    return isinstance(e, Member) and isinstance(e.base, Name) and e.base.text in _LAUNCH


def _template_args(data: bytes, node: Node) -> tuple[str, ...]:
    listed = node.child_by_field_name("arguments")
    return () if listed is None else tuple(" ".join(_text(data, a).split()) for a in listed.named_children)


def _subscript(data: bytes, node: Node) -> Expr | None:
    base, listed = _field(data, node, "argument"), node.child_by_field_name("indices")
    if base is None or listed is None:
        return None
    indices = [c for c in listed.named_children if c.type != "comment"]
    return Index(base, expression(data, indices[0])) if len(indices) == 1 else None


def _member(data: bytes, node: Node) -> Expr | None:
    base, field = _field(data, node, "argument"), node.child_by_field_name("field")
    if base is None or field is None or field.type != "field_identifier":
        return None
    return Member(base, _text(data, field), _operator(data, node) == "->")


def _cast(data: bytes, node: Node) -> Expr | None:
    type_, value = node.child_by_field_name("type"), _field(data, node, "value")
    return None if type_ is None or value is None else Cast(" ".join(_text(data, type_).split()), value)


_READERS: dict[str, Callable[[bytes, Node], Expr | None]] = {
    "parenthesized_expression": _parenthesized,
    "binary_expression": _binary,
    "comma_expression": _comma,
    "unary_expression": _unary,
    "pointer_expression": _unary,
    "conditional_expression": _conditional,
    "call_expression": _call,
    "subscript_expression": _subscript,
    "field_expression": _member,
    "cast_expression": _cast,
}
