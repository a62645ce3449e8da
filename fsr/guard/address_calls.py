"""Addresses through casts and calls: what becomes an integer, what functions are given and give back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fsr.guard.address_flow import Flow
from fsr.guard.address_names import Function, Key
from fsr.guard.places import LOW, NULL, NUMBER, WORDS, Value, constant, followed, joined, unary
from fsr.guard.pointed import FLOATS, Type, base_of, described, spelled, text_of
from fsr.hardware.c_types import BY_SPELLING, LANES

if TYPE_CHECKING:
    from tree_sitter import Node

_NAME = re.compile(r"\b[A-Za-z_]\w*")
_CASTS = frozenset(("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast", "__builtin_bit_cast"))
_COPIES = frozenset(("memcpy", "__builtin_memcpy", "memmove"))
_SAME = frozenset(("move", "forward", "addressof", "launder", "__builtin_assume_aligned", "assume_aligned", "as_const"))


class Calls(Flow):
    """Casts, in all their spellings, and calls."""

    def _unary_expression(self, node: Node) -> Value:
        op, inner = text_of(node.child_by_field_name("operator")), node.child_by_field_name("argument")
        op = WORDS.get(op, op)
        if op in ("!", "(") and self._original(node).startswith("("):
            spelt = self._original(node)
            return self.cast(node, spelled(spelt[1 : spelt.index(")")]), self.read(inner))
        value = self.read(inner)
        if op == "!":
            self.asked(inner, value)
        return unary(op, value)

    def _original(self, node: Node) -> str:
        """The node as it stands in the text, brackets that were taken out for the grammar among it."""
        return self.source[self.names.base + node.start_byte : self.names.base + node.end_byte]

    # ------------------------------------------------ casts

    def _cast_expression(self, node: Node) -> Value:
        inner, value = node.child_by_field_name("type"), self.read(node.child_by_field_name("value"))
        if inner is not None and (factors := self._factors(inner)):
            return self.fault(node) if any(one.kind for one in (*factors, value)) else NUMBER
        return self.cast(node, described(inner) if inner is not None else Type(""), value)

    def _factors(self, inner: Node) -> list[Value]:
        """The values of the variables in what reads like a type and is none: ``(a * (float)(n)) - b`` subtracts, where
        ``a`` is a variable, and would be a cast to a pointer to a function, were it a type."""
        base = inner.child_by_field_name("type")
        if base is None or base.type != "type_identifier" or self.names.key(text_of(base)) is None:
            return []
        return [self._named(text) for text in _NAME.findall(text_of(inner))]

    def cast(self, node: Node, type_: Type, value: Value) -> Value:
        """A value as another type."""
        type_ = self.names.resolved(type_)
        if type_.stars or type_.dims:
            return self._pointer(node, type_, value)
        if type_.base in FLOATS:
            return self.fault(node) if value.kind in ("place", "shared") else replace(value, whole=False)
        if type_.base in ("bool", "void"):
            if type_.base == "bool":
                self.asked(node, value)
            return NUMBER
        if value.kind == "record":
            return self._pun(node) if type_.reference else NUMBER
        if value.kind == "place" and value.array and type_.reference:
            return replace(followed(value), type=type_.base)
        if value.kind == "place" and type_.base in self.names.records and not type_.reference:
            return self.made(type_.base, [value])
        if value.kind in ("place", "shared", "low"):
            return replace(value, whole=True, array=False)
        return replace(value, whole=True, type=type_.base)

    def _pun(self, node: Node) -> Value:
        return Value("place", 1, whole=True, roots=frozenset([("pun", self.names.base + node.start_byte)]))

    def _pointer(self, node: Node, type_: Type, value: Value) -> Value:
        depth, held = type_.stars + type_.dims, type_.stars > 1
        record = self.names.records.get(type_.base)
        held = held or (record is not None and record.holds)
        if value.kind == "place":
            if value.scale != 1:
                return self.fault(node)
            depth = max(depth, 2) if value.held and not (record is not None and record.holds) else depth
            if type_.stars > 1 and not value.held:
                self.put(node, value, Value("place", 1))
            return Value("place", depth, held or value.held, False, value.roots, moved=value.moved, type=type_.base)
        if value.null:
            return Value("place", depth, held, roots=frozenset([NULL]), type=type_.base)
        if value.kind == "low" or (value.constants and not value.kind):
            return self.fault(node)
        made = frozenset([("made", self.names.base + node.start_byte)])
        return Value("place", depth, held, roots=made, type=type_.base)

    def _compound_literal_expression(self, node: Node) -> Value:
        inner, listed = node.child_by_field_name("type"), node.child_by_field_name("value")
        values = [self.read(c) for c in listed.named_children] if listed is not None else []
        return self._typed(node, base_of(inner), values)

    def _typed(self, node: Node, name: str, values: Sequence[Value]) -> Value:
        type_ = self.names.resolved(Type(name))
        if type_.base in self.names.records:
            return self.made(type_.base, values)
        return self.cast(node, type_, values[0] if values else constant(0))

    def made(self, name: str, values: Sequence[Value]) -> Value:
        """An object of a record made of values: by a constructor, or field by field."""
        record = self.names.records[name]
        if name in self.names.functions:
            for function in self.names.functions[name]:
                self.bind(None, function, values)
        else:
            for field, value in zip(record.order, values, strict=False):
                self._give(record.fields[field], value)  # type: ignore[arg-type]
        return Value("record" if record.holds else "", held=record.holds, type=name)

    def _give(self, key: Key, value: Value) -> None:
        if value.kind in ("place", "shared", "low"):
            self.names.join(key, value)

    # ------------------------------------------------ calls

    def _call_expression(self, node: Node) -> Value:
        callee, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        arguments = [c for c in listed.named_children if c.type != "comment"] if listed is not None else []
        if callee is None:
            return NUMBER
        owner = NUMBER
        if callee.type == "field_expression":
            owner = self.read(callee.child_by_field_name("argument"))
            callee = callee.child_by_field_name("field") or callee
        while callee.type == "qualified_identifier":
            callee = callee.child_by_field_name("name") or callee
        templates: list[Node] = []
        if callee.type in ("template_function", "template_method"):
            found = callee.child_by_field_name("arguments")
            templates = [] if found is None else list(found.named_children)
            callee = callee.child_by_field_name("name") or callee
        name = text_of(callee).strip("() ") if callee.type == "parenthesized_expression" else text_of(callee)
        if name == "__builtin_bit_cast" and listed is not None and arguments:
            return self.cast(node, spelled(text_of(listed)[1:].split(",")[0]), self.read(arguments[-1]))
        values = [self.read(a) for a in arguments]
        if name in _CASTS and templates and values:
            return self._spelled_cast(node, name, templates[0], values[0])
        return self._called(node, callee, name, templates, values, owner)

    def _spelled_cast(self, node: Node, name: str, type_: Node, value: Value) -> Value:
        to = described(type_) if type_.type == "type_descriptor" else spelled(text_of(type_))
        if name == "bit_cast" and value.kind == "record":
            return self._pun(node)
        return self.cast(node, to, value)

    def _called(self, node: Node, callee: Node, name: str, templates: Sequence[Node], values: Sequence[Value],
                owner: Value) -> Value:  # fmt: skip
        key = self.names.key(name)
        functions = self.names.functions.get(name, []) if callee.type != "lambda_expression" else []
        if callee.type == "lambda_expression":
            self.read(callee)
            functions = [self.names.function(callee)]
        elif key is not None and (self._made_type(key) in self.names.records or not functions) and not owner.kind:
            made = self.names.by_node.get(self.names.lambdas.get(key, -1))
            functor = self._made_type(key) in self.names.dependent or self._made_type(key) in self.names.records
            functions = [made] if made is not None else self.names.functions.get("operator()", []) if functor else []
            roots = self.names.values.get(key, NUMBER).roots
            pointed = [r[1] for r in roots if isinstance(r, tuple) and r[0] == "function"]
            if pointed:  # whatever it is cast to
                functions = [f for one in pointed for f in self.names.functions.get(one, [])]
                values = [replace(v, whole=True) if v.kind == "place" else v for v in values]
        elif callee.type.endswith("_expression") and callee.type != "parenthesized_expression":
            self.read(callee)
            functions = self.names.functions.get("operator()", [])
        elif not functions and len(values) <= 1 and self.names.is_type(name) and callee.type != "field_identifier":
            return self._typed(node, name, values)
        if name in self.names.records and functions:
            return self.made(name, values)
        self._given_back(node)
        if not functions:
            return self._foreign(node, name, values)
        result = NUMBER
        for function in functions:
            if len(functions) == 1 or len(values) <= len(function.parameters):
                self._templates(function, templates)
                one = self.bind(node, function, values)
                result = one if result == NUMBER else joined(result, one)
        return result

    def _given_back(self, node: Node) -> None:
        """A pointer that was nothing may be set by what it is given to."""
        listed = node.child_by_field_name("arguments")
        for child in () if listed is None else listed.named_children:
            key = self.names.key(text_of(child).lstrip("&"))
            value = self.names.values.get(key, NUMBER) if key is not None else NUMBER
            if key is not None and value.kind == "place" and value.roots == frozenset([NULL]):
                self.names.join(key, replace(value, roots=frozenset([("out", key)])))

    def _made_type(self, key: Key) -> str:
        return self.names.types.get(key, Type("")).base

    def _templates(self, function: Function, templates: Sequence[Node]) -> None:
        for key, node in zip(function.templates, templates, strict=False):
            if key in self.names.values:
                value = self.read(node)
                self.names.join(key, Value(constants=value.constants, whole=True))

    def bind(self, node: Node | None, function: Function, values: Sequence[Value]) -> Value:
        """The result of a function that is given these values."""
        given: dict[object, Value] = {}
        if function.kernel:
            return NUMBER  # the plan launches it
        for parameter, value in zip(function.parameters, values, strict=False):
            given[parameter.key] = value
            type_ = self.names.resolved(parameter.type)
            rounded = type_.base in FLOATS and not type_.stars and value.whole and value.kind in ("place", "shared")
            if rounded and node is not None:
                self.fault(node)
            elif not type_.stars and (type_.base in LANES or (type_.base in BY_SPELLING and not value.whole)):
                continue  # another overload's, since no address is that
            elif value.kind == "place":
                self.names.join(parameter.key, replace(value, roots=frozenset([parameter.key]), array=False,
                                                       type=""))  # fmt: skip
            elif type_.base not in ("bool",):
                self.names.join(parameter.key, replace(value, type=""))
        for a, b in function.pairs:
            both = a in given and b in given and given[a].kind == given[b].kind == "place"
            if both and node is not None and not self.same(given[a], given[b]):
                self.fault(node)
        result = function.result
        if result.kind and not any(v.kind for v in values) and self._closed(function):
            return NUMBER  # it has that from the arguments of other calls
        roots = frozenset(r for root in result.roots for r in (given[root].roots if root in given else [root]))
        return replace(result, roots=roots)

    def _closed(self, function: Function) -> bool:
        """Whether a function has nothing to take an address of, or from, but what it is given."""
        types = [self.names.resolved(p.type) for p in function.parameters]
        body = text_of(function.body)
        sources = ("&", "__shared__", "cvta", "mov", "this", '"%', "[")
        inside = function.record is not None or not function.name
        return not inside and not any(t.stars + t.dims for t in types) and not any(word in body for word in sources)

    def _foreign(self, node: Node, name: str, values: Sequence[Value]) -> Value:
        """A function of CUDA's or of a library's."""
        first = values[0] if values else NUMBER
        if name == "__cvta_generic_to_shared" and first.kind == "place":
            far = first.roots & self.names.kernels
            return replace(first, whole=True, moved=True) if far else Value("shared", whole=True)
        if name.startswith("__cvta_"):
            kept = first if first.kind == "place" else Value("place", 1, roots=frozenset([("made", node.start_byte)]))
            return replace(kept, whole="_to_generic" not in name, moved=True)
        if name in _SAME:
            return first
        if name in _COPIES and len(values) > 1:
            if values[1].held and not values[0].held:
                self.put(node, values[0], Value("place", 1, whole=True))
            return first
        near = all(self.same(v, v) and v.scale == 1 for v in values if v.kind == "place")
        if name.startswith(("__shfl", "__match_a")) and near and any(v.kind == "place" for v in values):
            passed = next(v for v in values if v.kind == "place")  # which lanes have the same one
            return passed if "shfl" in name else NUMBER
        if name in ("min", "max") and len(values) == 2 and all(v.kind == "place" and v.scale == 1 for v in values):
            return joined(*values) if self.same(*values) else self.fault(node)
        whole = [v for v in values if (v.kind == "place" and v.whole) or v.kind == "shared"]
        if any(v.kind == "place" for v in whole):
            return self.fault(node)
        if whole:
            return Value("shared", whole=True)
        if name.startswith(("atomic", "__ld")) and first.kind == "place":
            if first.depth < 2 and any(v.kind == "low" for v in values[1:]):
                self.put(node, first, LOW)
            return self._at(node, followed(first))
        return LOW if any(v.kind == "low" for v in values) else NUMBER
