"""The names of a text that addresses pass through: aliases, records, functions, variables in their scopes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from fsr.guard.places import NUMBER, Value, constant, joined
from fsr.guard.pointed import FLOATS, RECORDS, Record, Type, base_of, declarator, described, text_of
from fsr.hardware.c_types import BY_SPELLING, LANES

if TYPE_CHECKING:
    from tree_sitter import Node

Key = tuple[int, str]
NO_TYPE = Type("")
_SETTLED = 2  # readings after which a number that gains values is one that counts
_INTEGERS = frozenset(("char", "short", "int", "long", "unsigned", "signed", "size_t", "bool"))


@dataclass(slots=True)
class Parameter:
    key: Key
    type: Type


@dataclass(slots=True)
class Function:
    """``pairs``: parameters that must lie in one buffer, by their places, since it takes one from the other."""

    name: str
    parameters: list[Parameter]
    body: Node | None
    kernel: bool = False
    record: Record | None = None
    templates: list[Key] = field(default_factory=list)
    result: Value = NUMBER
    returns: Type = NO_TYPE
    pairs: set[tuple[Key, Key]] = field(default_factory=set)


class Taken(NamedTuple):
    """A kernel's parameter: whether it may be a pointer, or hold one; ``of`` which argument of the template it is, and
    ``default`` the type where none is given."""

    name: str
    pointer: bool
    of: int | None = None
    default: str = ""

    def points(self, templates: Sequence[str]) -> bool:
        """The same where the template's arguments are these."""
        told = templates[self.of] if self.of is not None and self.of < len(templates) else self.default
        return self.pointer and not is_number(told)


def is_number(spelling: str) -> bool:
    """Whether a type is a number's, or that of a few numbers."""
    return spelling in BY_SPELLING or spelling in LANES


def _is_one_of(type_: Type, templates: Sequence[str]) -> bool:
    return type_.base in templates and not type_.stars + type_.dims


class Names:
    """All that a text declares. Keys are (offset in the text, name)."""

    def __init__(self) -> None:
        self.aliases: dict[str, Type] = {}
        self.records: dict[str, Record] = {}
        self.functions: dict[str, list[Function]] = {}
        self.by_node: dict[int, Function] = {}
        self.values: dict[Key, Value] = {}
        self.types: dict[Key, Type] = {}
        self.given: set[Key] = set()  # parameters: what they lead to is not the function's own
        self.kernels: set[Key] = set()  # parameters of kernels
        self.dependent: set[str] = {"auto", "decltype(auto)"}
        self.scopes: list[dict[str, Key]] = [{}]
        self.defaults: dict[Key, str] = {}  # types of templates' parameters where none is given
        self.lambdas: dict[Key, int] = {}  # of variables that hold one, where it stands
        self.extents: dict[Key, int | None] = {}  # elements of fields
        self.overlaid: set[Key] = set()  # fields of unions
        self.base = 0  # where the item begins that is read
        self.kernel = False  # whether that is a kernel
        self.template: tuple[tuple[str, str], ...] = ()  # its template's parameters and their defaults, as written
        self.changed = False
        self.reading = 1  # how often the text has been read, this time with it

    # ------------------------------------------------ types

    def resolved(self, type_: Type) -> Type:
        """A type with its aliases followed."""
        for _ in range(16):
            known = self.aliases.get(type_.base)
            if known is None or known.base == type_.base:
                break
            type_ = Type(known.base, type_.stars + known.stars, type_.dims + known.dims,
                         type_.reference or known.reference)  # fmt: skip
        return type_

    def taken_by_kernels(self) -> dict[str, tuple[Taken, ...]]:
        """Of each kernel its parameters."""
        found = {}
        for function in (f for same in self.functions.values() for f in same if f.kernel):
            types = [(p.key[1], self.resolved(p.type)) for p in function.parameters]
            found[function.name] = tuple(self._taken(function, name, t) for name, t in types)
        return found

    def _taken(self, function: Function, name: str, type_: Type) -> Taken:
        templates = [written for _, written in function.templates]
        if not _is_one_of(type_, templates):
            return Taken(name, self._may_point(type_))
        of = templates.index(type_.base)
        return Taken(name, self._may_point(type_), of, self.defaults.get(function.templates[of], ""))

    def _may_point(self, type_: Type) -> bool:
        record = self.records.get(type_.base)
        known = record is not None or is_number(type_.base)
        return type_.stars + type_.dims > 0 or not known or (record is not None and record.holds)

    def is_type(self, name: str) -> bool:
        words = name.split()
        return bool(words) and (
            name in self.aliases or name in self.records or name in self.dependent or name in FLOATS
            or words[0] in _INTEGERS or name.endswith("_t")
        )  # fmt: skip

    def first(self, type_: Type, key: Key) -> Value:
        """What a variable of a type is before anything is given to it."""
        type_ = self.resolved(type_)
        record = self.records.get(type_.base)
        held = type_.stars + min(type_.dims, 1) > 1 and type_.stars > 0
        if type_.stars + type_.dims:
            roots = frozenset([key]) if type_.dims or key in self.given else frozenset[Key]()
            held = held or (record is not None and record.holds)
            return Value("place", type_.stars + type_.dims, held, type_.dims > 0, roots, type=type_.base)
        if record is not None and record.holds:
            return Value("record", held=True, type=type_.base)
        known = None if key in self.kernels or type_.base in FLOATS else frozenset[int]()
        return Value(constants=known, type=type_.base, whole=type_.base not in FLOATS)

    def size(self, type_: Type, deep: int = 8) -> int | None:
        """Bytes of a type, at least, gaps left out; None where the text does not tell, or not plainly."""
        type_ = self.resolved(type_)
        if type_.stars:
            return 8
        number = BY_SPELLING.get(type_.base)
        element, lanes = LANES.get(type_.base, (number, 1))
        if element is not None:
            return element.bytes * lanes
        record = self.records.get(type_.base)
        if record is None or not deep:
            return None
        sizes = [self.size(Type(base), deep - 1) for base in record.bases]
        for key in set(record.written):
            one, count = self.size(replace(self.types[key], dims=0), deep - 1), self.extents[key]
            sizes.append(one * count if one is not None and count is not None else None)
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def any_large(self) -> bool:
        """Whether a record of the text may have more than 256 bytes, foreign types taken for vectors."""
        return any(self._bulk(record) > 256 for record in self.records.values())

    def _bulk(self, record: Record, deep: int = 8) -> int:
        total = 0
        for key in set(record.written):
            inside, count = self.records.get(self.resolved(self.types[key]).base), self.extents[key]
            one = self._bulk(inside, deep - 1) if inside is not None and deep else 16
            total += 4096 if count is None else one * count
        return total

    # ------------------------------------------------ variables

    def declare(self, node: Node, type_: Type, given: bool = False, kernel: bool = False) -> Key:
        name = text_of(node)
        key = (self.base + node.start_byte, name)
        self.scopes[-1][name] = key
        if key not in self.types:
            self.types[key] = type_
            if given:
                self.given.add(key)
            if kernel:
                self.kernels.add(key)
            self.values[key] = self.first(type_, key)
        return key

    def key(self, name: str) -> Key | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def join(self, key: Key, value: Value) -> None:
        before = self.values.get(key, NUMBER)
        if key in self.overlaid and value.kind == "place":
            value = Value("place", 4, True, roots=frozenset([key]))
        after = joined(before, value)
        if self.reading > _SETTLED and after.constants != before.constants:
            after = replace(after, constants=None)  # it counts, and would be found to have one value more each time
        if after != before:
            self.values[key], self.changed = after, True

    # ------------------------------------------------ what stands in the text

    def collect(self, root: Node, record: Record | None = None) -> None:
        """Take in the aliases, records, enumerators and functions of a tree, local ones among them."""
        for node in root.children:
            kind = node.type
            if kind == "alias_declaration":
                self.aliases[text_of(node.child_by_field_name("name"))] = _described(node.child_by_field_name("type"))
            elif kind == "type_definition":
                base = base_of(node.child_by_field_name("type"))
                for child in node.children_by_field_name("declarator"):
                    found = declarator(child)
                    self.aliases[text_of(found.name)] = Type(base, found.stars, found.dims, found.reference)
            elif kind == "type_parameter_declaration" or kind.endswith("type_parameter_declaration"):
                names = [c for c in node.named_children if c.type == "type_identifier"]
                self.dependent.update(text_of(n) for n in names[:1])
            elif kind == "enumerator":
                self._enumerator(node)
            if kind in RECORDS and node.child_by_field_name("body") is not None:
                self.collect(node, self._record(node))
            elif kind == "function_definition":
                self.function(node, record)
                self.collect(node)
            else:
                self.collect(node, record)

    def _enumerator(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            key = (self.base + name.start_byte, text_of(name))
            self.scopes[0][key[1]] = key
            try:
                self.values[key] = constant(int(text_of(node.child_by_field_name("value")) or "0", 0))
            except ValueError:
                self.values[key] = NUMBER

    def _record(self, node: Node) -> Record:
        name = base_of(node)
        record = self.records.setdefault(name, Record(name, node.type == "union_specifier"))
        for base in (c for c in node.children if c.type == "base_class_clause"):
            record.bases += [base_of(c) for c in base.named_children]
            record.holds |= any(self.records[b].holds for b in record.bases if b in self.records)
        for child in node.child_by_field_name("body").named_children:  # type: ignore[union-attr]
            if child.type == "field_declaration":
                self._fields(record, child)
        if record.union and record.holds and record.order:
            self._overlaid(record)
        return record

    def _overlaid(self, record: Record) -> None:
        """A union of pointers and of others: whatever is read of it may be an address."""
        key: Key = record.fields[record.order[0]]  # type: ignore[assignment]
        if not all(self.resolved(self.types[k]).stars for k in record.written):
            self.values[key] = Value("place", 4, True, roots=frozenset([key]))

    def _fields(self, record: Record, node: Node) -> None:
        inner = node.child_by_field_name("type")
        base = base_of(inner)
        declared = node.children_by_field_name("declarator")
        if not declared and inner is not None and inner.type in RECORDS:  # an anonymous one: its fields are these
            nested = self._record(inner)
            for name in nested.order:
                record.fields[name] = nested.fields[name]
                record.written += nested.written
                record.order.append(name)
            record.holds |= nested.holds
        for child in declared:
            found = declarator(child)
            if found.name is None or (found.function is not None and not found.stars):
                continue
            type_ = Type(base, found.stars, found.dims, found.reference)
            key = (self.base + found.name.start_byte, text_of(found.name))
            self.types.setdefault(key, type_)
            record.written.append(key)
            self.extents[key] = _extent(text_of(child))
            if record.union and record.fields:
                key = next(iter(record.fields.values()))  # type: ignore[assignment]
            record.fields[text_of(found.name)] = key
            record.order.append(text_of(found.name))
            self._initial(record, key, type_)

    def _initial(self, record: Record, key: Key, type_: Type) -> None:
        plain = self.resolved(type_)
        inside = self.records.get(plain.base)
        if record.union and not plain.stars and not (inside is not None and inside.holds):
            type_ = Type(plain.base)  # what lies over one another is one value, an array of it as well
            self.overlaid.add(key)
        first = replace(self.first(type_, key), roots=frozenset([key]))
        if record.union and first.kind == "record":
            first = Value("place", 1, roots=frozenset([key]))
        self.values[key] = joined(self.values[key], first) if key in self.values else first
        record.holds |= plain.stars > 0 or (inside is not None and inside.holds)

    def function(self, node: Node, record: Record | None = None) -> Function:
        """The function of a definition or a lambda."""
        if node.start_byte + self.base in self.by_node:
            return self.by_node[node.start_byte + self.base]
        found = declarator(node.child_by_field_name("declarator"))
        inner = found.function or node.child_by_field_name("declarator")
        listed = None if inner is None else inner.child_by_field_name("parameters")
        written = node.child_by_field_name("declarator")
        conversion = written is not None and written.type == "operator_cast"
        name = "operator" if conversion else text_of(found.name)
        kernel = self.kernel and node.type == "function_definition"
        function = Function(name, [], node.child_by_field_name("body"), kernel, record)
        outer = _qualifier(node)
        if outer in self.records:
            function.record = self.records[outer]
        returns = node.child_by_field_name("type")
        function.returns = Type(base_of(returns), found.stars, 0, found.reference)
        self.scopes.append({})
        for child in () if listed is None else listed.named_children:
            if "parameter_declaration" in child.type:
                told = declarator(child.child_by_field_name("declarator"))
                type_ = Type(base_of(child.child_by_field_name("type")), told.stars, told.dims, told.reference)
                at = told.name if told.name is not None else child
                key = self.declare(at, type_, given=True, kernel=function.kernel)
                function.parameters.append(Parameter(key, type_))
        for parent in _templates(node):
            for child in parent.named_children:
                if "parameter_declaration" in child.type:
                    function.templates.append(self._template_parameter(child))
        if function.kernel and not function.templates:  # a macro or a condition in the head hides them from the grammar
            for parameter, default in self.template:
                function.templates.append((self.base, parameter))
                self.defaults[self.base, parameter] = default
        self.scopes.pop()
        self.by_node[node.start_byte + self.base] = function
        if name:
            self.functions.setdefault(name, []).append(function)
        return function

    def _template_parameter(self, node: Node) -> Key:
        told = node.child_by_field_name("name")  # where a default type follows
        name = declarator(node.child_by_field_name("declarator")).name or told or (node.named_children or [node])[-1]
        key = (self.base + name.start_byte, text_of(name))
        if told is not None:
            self.defaults[key] = _default(node)
        if "type_parameter" not in node.type and key not in self.values:
            self.types[key] = Type(base_of(node.child_by_field_name("type")))
            self.values[key] = Value(constants=frozenset(), whole=True)
        return key


def _default(node: Node) -> str:
    """The type behind the sign of equality, with its stars, which the grammar leaves outside of the parameter."""
    own, parent = text_of(node).partition("=")[2], node.parent
    behind = "" if parent is None else text_of(parent).partition(own)[2]
    return (own + behind.partition(",")[0].partition(">")[0]).strip()


def _extent(written: str) -> int | None:
    """How many elements a declarator says: 6 of ``a[2][3]``; None where that is no plain number."""
    found = [part.strip() for part in re.findall(r"\[([^\]]*)\]", written)]
    return math.prod(int(part) for part in found) if all(part.isdecimal() for part in found) else None


def _described(node: Node | None) -> Type:
    return Type("") if node is None else described(node)


def _qualifier(node: Node) -> str:
    """``S`` of ``float S::f()``."""
    inner = node.child_by_field_name("declarator")
    while inner is not None and inner.type != "qualified_identifier":
        inner = inner.child_by_field_name("declarator")
    return "" if inner is None else base_of(inner.child_by_field_name("scope"))


def _templates(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None and parent.type in ("template_declaration", "field_declaration_list", *RECORDS):
        found = parent.child_by_field_name("parameters") if parent.type == "template_declaration" else None
        if found is not None:
            yield found
        parent = parent.parent
