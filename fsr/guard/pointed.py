"""What a text's declarations say about addresses: stars, arrays, references, records that hold pointers, aliases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

FLOATS = frozenset("float double half __half nv_bfloat16 __nv_bfloat16 bfloat16 long_double _Float16".split())  # noqa: SIM905
_SKIPPED = frozenset(("const", "volatile", "struct", "typename", "enum", "class", "union"))
RECORDS = ("struct_specifier", "union_specifier", "class_specifier")


@dataclass(frozen=True, slots=True)
class Type:
    """``stars``: indirections that are pointers, ``dims``: those that are arrays."""

    base: str
    stars: int = 0
    dims: int = 0
    reference: bool = False


@dataclass(slots=True)
class Declarator:
    """``name``: where it stands, None for none; ``function``: the node that holds parameters."""

    name: Node | None
    stars: int = 0
    dims: int = 0
    reference: bool = False
    function: Node | None = None


@dataclass(slots=True)
class Record:
    """``fields``: the key of each field's value; those of a union share one. ``order``: fields as they are
    written, ``written``: where."""

    name: str
    union: bool
    fields: dict[str, object] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    holds: bool = False


def text_of(node: Node | None) -> str:
    return "" if node is None else (node.text or b"").decode("latin-1")


def declarator(node: Node | None) -> Declarator:
    """What a declarator, abstract or not, says."""
    found = Declarator(None)
    while node is not None:
        kind = node.type
        if kind in ("identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name"):
            found.name = node
            return found
        if kind == "qualified_identifier":
            inner = node.child_by_field_name("name")
            while inner is not None and inner.type == "qualified_identifier":
                inner = inner.child_by_field_name("name")
            node = inner
            continue
        if kind in ("function_declarator", "abstract_function_declarator"):
            found.function = node
        found.stars += "pointer_declarator" in kind
        found.dims += "array_declarator" in kind
        found.reference |= "reference_declarator" in kind
        node = node.child_by_field_name("declarator") or next(
            (c for c in node.named_children if c.type.endswith(("declarator", "identifier"))), None
        )
    return found


def base_of(node: Node | None) -> str:
    """The bare name of a type node; for one that is spelled with its body, its name, else the node's own mark."""
    if node is None:
        return ""
    if node.type in (*RECORDS, "enum_specifier"):
        name = node.child_by_field_name("name")
        return text_of(name) if name is not None else f"@{node.type}{node.id}"
    if node.type == "type_descriptor":
        return base_of(node.child_by_field_name("type"))
    if node.type in ("qualified_identifier", "template_type", "dependent_type"):
        return base_of(node.child_by_field_name("name") or next(reversed(node.named_children), None))
    return " ".join(w for w in text_of(node).split() if w not in _SKIPPED)


def described(node: Node) -> Type:
    """The type of a type descriptor: ``const float *``."""
    found = declarator(node.child_by_field_name("declarator"))
    return Type(base_of(node.child_by_field_name("type")), found.stars, found.dims, found.reference)


def spelled(text: str) -> Type:
    """The type of plain text, without arrays."""
    words = text.replace("*", " ").replace("&", " ").split()
    base = " ".join(w for w in words if w not in _SKIPPED and "restrict" not in w)
    return Type(base.rsplit("::", 1)[-1], text.count("*"), 0, "&" in text)
