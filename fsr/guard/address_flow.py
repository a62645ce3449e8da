"""Addresses followed through the expressions of a text, from where they are taken to where they decide."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from fsr.guard.address_names import Function, Key, Names
from fsr.guard.names import INDEX_VARIABLES
from fsr.guard.places import LOW, NULL, NUMBER, Misuse, Value, binary, constant, followed, joined
from fsr.guard.pointed import RECORDS, base_of, spelled, text_of
from fsr.hardware.c_types import BY_SPELLING, LANES

if TYPE_CHECKING:
    from tree_sitter import Node

_SCOPES = frozenset(("compound_statement", "for_statement", "for_range_loop", "if_statement", "while_statement"))
_SPELT_CAST = re.compile(r"\(\s*[\w:][\w:\s]*[*&]*\s*\)\s*[\w(&*]|_cast\s*<")


class TooMuch(Exception):  # noqa: N818  # a reason to refuse, not an error of the program
    """A text that is small and takes long to follow: what is assigned to is read again, at every depth."""


class Flow:
    """One reading of a text's trees; ``faults``: where an address is misused, with what stands there. ``left``: how
    many nodes may still be read."""

    def __init__(self, names: Names, source: str) -> None:
        self.names = names
        self.source = source
        self.left = 10_000 + 4 * len(source)
        self.faults: dict[int, str] = {}
        self.inside: list[Function] = []

    # ------------------------------------------------ help

    def fault(self, node: Node) -> Value:
        self.faults.setdefault(self.names.base + node.start_byte, " ".join(text_of(node).split()))
        return NUMBER

    def guarded(self, node: Node, made: Callable[[], Value]) -> Value:
        try:
            return made()
        except Misuse:
            return self.fault(node)

    def same(self, a: Value, b: Value) -> bool:
        """Whether two places lie in one buffer; of two parameters whoever calls must say."""
        if not a.roots or not b.roots:
            return True
        if len(a.roots) > 1 or len(b.roots) > 1:
            return False
        (one,), (other,) = a.roots, b.roots
        if one == other:
            return one != NULL
        mine = {p.key for f in self.inside for p in f.parameters if not f.kernel}
        if one in mine and other in mine:
            function = next(f for f in reversed(self.inside) if any(p.key == one for p in f.parameters))
            if any(p.key == other for p in function.parameters):
                function.pairs.add((one, other))
                return True
        return False

    def asked(self, node: Node | None, value: Value) -> None:
        """Whether a value is zero: an address may be nothing, yet no part of one says where it lies."""
        part = value.kind == "place" and (value.scale != 1 or (value.moved and value.whole))
        part = part or (value.kind == "low" and value.held and not value.moved)
        if node is not None and (value.kind == "shared" or part):
            self.fault(node)

    def put(self, node: Node, where: Value, value: Value) -> None:
        """A value is written where an address leads: an address only where pointers are, or into the function's own
        memory, which then holds addresses; what is left of one not into memory that others see."""
        if value.kind not in ("place", "shared", "low"):
            return
        element = followed(where)
        own = [r for r in where.roots if r in self.names.values and r not in self.names.given]
        if value.kind == "low":
            if len(own) < len(where.roots) and not value.moved:
                self.fault(node)
            return
        if element.kind in ("place", "record") or (not where.kind and not value.whole):
            return
        if not own or len(own) < len(where.roots):
            self.fault(node)
            return
        for key in own:
            old = self.names.values[key]
            if old.kind == "place":
                self.names.join(key, replace(old, depth=old.depth + 1, held=True))
            else:
                self.names.join(key, replace(value, whole=True))

    # ------------------------------------------------ nodes

    def read(self, node: Node | None) -> Value:
        """The value of an expression; of a statement, what it does is taken in. Raises TooMuch."""
        if node is None:
            return NUMBER
        self.left -= 1
        if self.left < 0:
            raise TooMuch
        found = getattr(self, "_" + node.type, None)
        if found is not None:
            value: Value = found(node)
            return value
        if node.type in RECORDS:
            return self._record(node)
        scoped = node.type in _SCOPES
        if scoped:
            self.names.scopes.append({})
        value = NUMBER
        for child in node.named_children:
            value = joined(value, self.read(child)) if child.type != "comment" else value
        if scoped:
            self.names.scopes.pop()
        if node.type == "ERROR" and _SPELT_CAST.search(text_of(node)) and self._names_a_place(node):
            self.fault(node)
        return value if node.type.endswith("expression") or node.type == "initializer_list" else NUMBER

    def _names_a_place(self, node: Node) -> bool:
        if node.type == "identifier":
            return self._identifier(node).kind == "place"
        return any(self._names_a_place(c) for c in node.named_children)

    def _record(self, node: Node) -> Value:
        record = self.names.records.get(base_of(node))
        body = node.child_by_field_name("body")
        if record is not None and body is not None:
            self.names.scopes.append(dict(record.fields))  # type: ignore[arg-type]
            for child in body.named_children:
                if child.type != "field_declaration" or child.child_by_field_name("default_value") is not None:
                    self.read(child)
            self.names.scopes.pop()
        return NUMBER

    def _comment(self, node: Node) -> Value:
        return NUMBER

    _type_definition = _alias_declaration = _using_declaration = _template_parameter_list = _comment
    _preproc_include = _preproc_def = _preproc_function_def = _decltype = _type_descriptor = _comment

    # ------------------------------------------------ leaves

    def _identifier(self, node: Node) -> Value:
        return self._named(text_of(node))

    def _named(self, name: str) -> Value:
        key = self.names.key(name)
        if key is not None:
            return self.names.values.get(key, NUMBER)
        if name in ("nullptr", "NULL"):
            return constant(0)
        if name in self.names.functions:
            return Value("place", 1, roots=frozenset([("function", name)]))
        return NUMBER

    def _qualified_identifier(self, node: Node) -> Value:
        name = node.child_by_field_name("name")
        if name is not None and name.type == "qualified_identifier":
            return self._qualified_identifier(name)
        return self._named(text_of(name).split("<")[0])

    def _null(self, node: Node) -> Value:
        return constant(0)

    def _this(self, node: Node) -> Value:
        record = next((f.record for f in reversed(self.inside) if f.record is not None), None)
        return Value("place", 1, True, roots=frozenset(["this"]), type=record.name if record else "")

    def _number_literal(self, node: Node) -> Value:
        text = text_of(node).replace("'", "").lower()
        digits = text.rstrip("ulz")
        try:
            octal = re.fullmatch(r"0[0-7]+", digits)
            return constant(int(digits, 8 if octal else 0))
        except ValueError:
            return Value()

    def _true(self, node: Node) -> Value:
        return constant(1)

    def _false(self, node: Node) -> Value:
        return constant(0)

    def _string_literal(self, node: Node) -> Value:
        return Value("place", 1, array=True, roots=frozenset(["text"]))

    def _sizeof_expression(self, node: Node) -> Value:
        text = re.sub(r"^(sizeof|alignof|__alignof__)\s*(\.\.\.)?\s*\(?|\)$", "", text_of(node)).strip()
        key = self.names.key(text)
        if key is not None and key in self.names.types:  # of a variable
            type_ = self.names.types[key]
            known = None if type_.dims else self.names.size(type_)
        elif key is not None:  # of whatever a template is made for
            return Value(whole=True, constants=None if self.names.any_large() else frozenset())
        else:
            known = self.names.size(spelled(text))
        foreign = spelled(text).base not in self.names.records and key is None
        return constant(known) if known is not None else Value(whole=True, constants=frozenset() if foreign else None)

    _alignof_expression = _sizeof_expression

    # ------------------------------------------------ operators

    def _binary_expression(self, node: Node) -> Value:
        left, right = (self.read(node.child_by_field_name(f)) for f in ("left", "right"))
        op = text_of(node.child_by_field_name("operator"))
        if op in ("&&", "||", "and", "or"):
            self.asked(node.child_by_field_name("left"), left)
            self.asked(node.child_by_field_name("right"), right)
        return self.guarded(node, lambda: binary(op, left, right, self.same))

    def _comma_expression(self, node: Node) -> Value:
        self.read(node.child_by_field_name("left"))
        return self.read(node.child_by_field_name("right"))

    def _pointer_expression(self, node: Node) -> Value:
        inner = node.child_by_field_name("argument")
        value = self.read(inner)
        if text_of(node.child_by_field_name("operator")) == "*":
            if value.kind == "shared":
                return self.fault(node)
            return self._at(node, followed(value))
        key = self._variable(inner)
        if any(isinstance(r, tuple) and r[0] == "function" for r in value.roots):
            return value
        if inner is not None and inner.type == "qualified_identifier" and value == NUMBER:
            return NUMBER  # of a member: how far it stands inside
        if inner is not None and inner.type in ("subscript_expression", "pointer_expression"):
            base = self.read(inner.child_by_field_name("argument"))
            if base.kind == "place":
                return replace(base, moved=True, array=False) if base.depth == value.depth + 1 else base
        held = value.held or (value.kind in ("place", "record") and not value.array)
        roots = value.roots if value.array else frozenset([key if key is not None else ("at", node.start_byte)])
        inner_kind = "shared" if value.kind == "shared" else "place"
        return Value("place", value.depth + 1, held or inner_kind == "shared", roots=roots, type=value.type)

    def _at(self, node: Node, value: Value) -> Value:
        if value.kind == "place" and any(isinstance(r, tuple) and r[0] == "at" for r in value.roots):
            return replace(value, roots=frozenset([("at", self.names.base + node.start_byte)]))
        return value

    def _variable(self, node: Node | None) -> Key | None:
        while node is not None and node.type in ("parenthesized_expression", "field_expression"):
            node = node.child_by_field_name("argument") or next(iter(node.named_children), None)
        return self.names.key(text_of(node)) if node is not None and node.type == "identifier" else None

    def _subscript_expression(self, node: Node) -> Value:
        base = self.read(node.child_by_field_name("argument"))
        index = NUMBER
        listed = node.child_by_field_name("indices")
        for child in () if listed is None else listed.named_children:
            index = self.read(child)
        if index.kind == "place" and base.kind != "place":
            base, index = index, base
        own = any(root in self.names.values and root not in self.names.given for root in base.roots)
        table = index.kind == "low" and not index.moved and own
        if index.kind in ("place", "shared") or base.kind == "shared" or table:
            return self.fault(node)
        if base.kind == "record":
            return self._results("operator[]")
        return self._at(node, followed(base))

    def _results(self, name: str) -> Value:
        result = NUMBER
        for function in self.names.functions.get(name, []):
            result = joined(result, function.result)
        return result

    def _field_expression(self, node: Node) -> Value:
        if text_of(node.child_by_field_name("argument")) in INDEX_VARIABLES:
            return NUMBER
        base, name = self.read(node.child_by_field_name("argument")), text_of(node.child_by_field_name("field"))
        if base.kind == "place" and text_of(node.child_by_field_name("operator")) == ".":
            return base
        key = self._field(base, name)
        if key is None:
            return NUMBER if base.kind != "low" else LOW
        value = self.names.values.get(key, NUMBER)
        if value.kind == "place" and not value.array:
            return replace(value, roots=frozenset([(key, text_of(node.child_by_field_name("argument")))]))
        return value

    def _field(self, base: Value, name: str) -> Key | None:
        record = self.names.records.get(base.type)
        if record is None and (base.type in BY_SPELLING or base.type in LANES or base.type == "dim3"):
            return None
        pending = [record] if record is not None else []
        for found in pending:
            if name in found.fields:
                return found.fields[name]  # type: ignore[return-value]
            pending += [r for b in found.bases if (r := self.names.records.get(b)) is not None and r not in pending]
        if record is not None:
            return None
        keys = [r.fields[name] for r in self.names.records.values() if name in r.fields]
        return max(keys, key=lambda k: bool(self.names.values[k].kind), default=None)  # type: ignore[index,return-value]
