"""What nodes of a syntax tree are that the grammar names alike, or takes for something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fsr.hardware.c_types import BY_SPELLING
from fsr.source.types import plain_type

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES = frozenset(["float16", "bfloat16"])  # of a number's size, but with constructors
_NUMBERS = frozenset(spelling for spelling, type_ in BY_SPELLING.items() if type_.dtype not in _CLASSES)


def named_after_brackets(text: Callable[[Node], str], node: Node) -> Node | None:
    """The name behind ``a < b >`` in a statement, which declares it: two comparisons would have no effect."""
    compared = node.named_children[0] if len(node.named_children) == 1 else None
    inner = None if compared is None else compared.child_by_field_name("left")
    for part, sign in ((compared, ">"), (inner, "<")):
        operator = None if part is None else part.child_by_field_name("operator")
        if part is None or part.type != "binary_expression" or operator is None or text(operator) != sign:
            return None
    right = None if compared is None else compared.child_by_field_name("right")
    if right is not None and right.type == "assignment_expression":
        right = right.child_by_field_name("left")
    elif right is not None and right.type == "call_expression":
        right = right.child_by_field_name("function")
    return right if right is not None and right.type == "identifier" else None


def is_array(declarator: Node | None) -> bool:
    """Whether a declarator has extents, of pointers too (``*rows[2]``)."""
    if declarator is None or declarator.type not in ("pointer_declarator", "array_declarator"):
        return False
    return declarator.type == "array_declarator" or is_array(declarator.child_by_field_name("declarator"))


def is_plain(base: str, declarator_type: str) -> bool:
    """Whether what is declared is a number or a pointer: initialised alike with ``=``, braces and parentheses."""
    if declarator_type == "pointer_declarator":
        return True
    return declarator_type == "identifier" and plain_type(base, {}) in _NUMBERS


def after_equals(value: Node) -> bool:
    before = value.prev_sibling
    return before is not None and before.type == "="


def is_qualifier(text: str, node: Node) -> bool:
    return node.type in ("type_qualifier", "storage_class_specifier") and text not in ("const", "volatile", "register")
