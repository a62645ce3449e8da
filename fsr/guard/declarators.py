"""Names that declarators introduce, read off the grammar: arrays by reference, pointers to functions, bit-fields.

The shape of a declaration alone makes nothing one's own: what stands in front of the declarator must be a type, and the
prototype of a function that the text does not define declares nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from fsr.source.blanks import blanks, readable
from fsr.source.items import flat, parse_items
from fsr.source.parse import syntax_tree

if TYPE_CHECKING:
    from tree_sitter import Node

_DECLARATIONS = frozenset((
    "declaration", "field_declaration", "parameter_declaration", "optional_parameter_declaration",
    "variadic_parameter_declaration", "type_definition", "for_range_loop",
))  # fmt: skip
_NAMES = frozenset(("identifier", "field_identifier", "type_identifier"))
_IS_TYPE = frozenset((
    "primitive_type", "sized_type_specifier", "placeholder_type_specifier", "decltype", "auto", "dependent_type",
    "template_type", "struct_specifier", "class_specifier", "union_specifier", "enum_specifier",
))  # fmt: skip


def introduced(text: str, types: Collection[str]) -> Iterator[tuple[str, int]]:
    """The names that declarators of the text introduce, with where each stands, in characters. ``types``: names that
    are known to be types."""
    code = text.encode("latin-1", "replace").decode("latin-1")
    for item in flat(parse_items(code, strict=False)):
        if item.kind in ("function", "record", "variable", "alias"):
            piece = code[item.start : item.end]
            for name, at in _names(syntax_tree(readable(blanks(piece)[0])), types):
                yield name, item.start + at


def _names(root: Node, types: Collection[str]) -> Iterator[tuple[str, int]]:
    pending = [root]
    while pending:
        node = pending.pop()
        pending += node.children
        leaves = [_bracketed(node, types)] if node.type == "expression_statement" else []
        if node.type in _DECLARATIONS and _typed(node.child_by_field_name("type"), types):
            listed = node.children_by_field_name("declarator")
            leaves += [_leaf(declarator, types) for declarator in listed if _bound(declarator, node)]
        yield from ((_text(leaf), leaf.start_byte) for leaf in leaves if leaf is not None)


def _bracketed(statement: Node, types: Collection[str]) -> Node | None:
    """The name of ``float (&v)[2] = w;``, which the grammar takes for a call; the language takes for a declaration what
    can be one."""
    node: Node | None = statement.named_children[0] if statement.named_children else None
    while node is not None and node.type in ("assignment_expression", "subscript_expression"):
        node = node.child_by_field_name("left") or node.child_by_field_name("argument")
    listed = node.child_by_field_name("arguments") if node is not None and node.type == "call_expression" else None
    if node is None or listed is None or listed.named_child_count != 1:
        return None
    given = listed.named_children[0]
    name = given.child_by_field_name("argument") if given.type == "pointer_expression" else None
    typed = _typed(node.child_by_field_name("function"), types)
    return name if typed and name is not None and name.type == "identifier" else None


def _typed(kind: Node | None, types: Collection[str]) -> bool:
    if kind is None or kind.type in _IS_TYPE:
        return kind is not None
    last = kind.child_by_field_name("name") if kind.type == "qualified_identifier" else kind
    return last is not None and (last.type in _IS_TYPE or _text(last) in types)


def _leaf(declarator: Node, types: Collection[str]) -> Node | None:
    """The name that a declarator is about; None where it is a function's, or has none."""
    node: Node | None = declarator
    while node is not None and node.type not in _NAMES:
        inner = _inner(node)
        if node.type == "function_declarator" and _plain(inner) and not _made(node, types):
            return None
        node = inner
    return node


def _inner(node: Node) -> Node | None:
    """The declarator inside of one, or its name; None inside of the name of a member that is defined elsewhere."""
    if node.type == "qualified_identifier":
        member = node.child_by_field_name("name")
        return member if member is not None and member.type.endswith("declarator") else None
    inner = node.child_by_field_name("declarator")
    if inner is None and node.type.endswith("declarator"):
        inner = next((c for c in node.named_children if c.type in _NAMES or c.type.endswith("declarator")), None)
    return inner


def _plain(node: Node | None) -> bool:
    """Whether it is a name, also in parentheses."""
    while node is not None and node.type == "parenthesized_declarator":
        node = _inner(node)
    return node is not None and node.type in _NAMES


def _bound(declarator: Node, statement: Node) -> bool:
    """Whether a reference gets what it refers to: without that it is a cast of an address."""
    inner: Node | None = declarator
    while inner is not None and inner.type in ("init_declarator", "array_declarator", "parenthesized_declarator"):
        inner = _inner(inner)
    refers = inner is not None and inner.type == "reference_declarator"
    return (
        not refers or declarator.type == "init_declarator" or statement.type not in ("declaration", "field_declaration")
    )


def _made(node: Node, types: Collection[str]) -> bool:
    """Whether what reads as a function's head makes an object: ``float a(p);``, whose p is no type."""
    listed = node.child_by_field_name("parameters")
    given = [] if listed is None else listed.named_children
    return bool(given) and all(
        parameter.type == "parameter_declaration"
        and parameter.named_child_count == 1
        and parameter.named_children[0].type == "type_identifier"
        and _text(parameter) not in types
        for parameter in given
    )


def _text(node: Node) -> str:
    return (node.text or b"").decode("latin-1")
