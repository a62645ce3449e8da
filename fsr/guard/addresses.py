"""Refuses kernels that can behave by where their buffers lie.

Addresses differ between the CPU, a GPU and tests, and no number of tests meets all of them, so a candidate that asks
for one could be right wherever it is looked at. Of an address only the alignment may be asked; see
:mod:`fsr.guard.places` for what that is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from fsr.guard.address_calls import Calls
from fsr.guard.address_flow import TooMuch
from fsr.guard.address_names import Function, Key, Names, Taken
from fsr.guard.asm_places import carried
from fsr.guard.places import NULL, NUMBER, WORDS, Misuse, Value, binary, constant, followed, joined
from fsr.guard.pointed import FLOATS, Type, base_of, declarator, text_of
from fsr.records import Plan
from fsr.source.blanks import blanks, readable
from fsr.source.entry import function_name, template_arguments, template_parameters
from fsr.source.items import flat, parse_items
from fsr.source.parse import syntax_tree
from fsr.source.tokens import tokenize

if TYPE_CHECKING:
    from tree_sitter import Node

_DEPTH = 20_000  # calls of Python's; an operator takes three
_ROUNDS = 24  # readings until what functions get and give no longer changes; deep chains of calls are short


def misused_addresses(source: str) -> tuple[tuple[int, str], ...]:
    """Where a preprocessed text uses an address as a number, by offset, and what stands there. Raises nothing."""
    return _followed(source)[0]


def first_misuse(source: str, own: str) -> tuple[int, str] | None:
    """The first of :func:`misused_addresses` that the original does not hold as well."""
    found = misused_addresses(source)
    theirs = {_without_spaces(text) for _, text in misused_addresses(own)} if found else set()
    return next(((at, text) for at, text in found if _without_spaces(text) not in theirs), None)


def _without_spaces(text: str) -> str:
    """Told apart by its tokens: a statement that is written anew has its spaces elsewhere."""
    return "".join(text.split())


def disguised_buffer(candidate: Plan, source: str, baseline: Plan, own: str) -> str | None:
    """The parameter that takes as a number, or in a record of numbers, what the original takes as a pointer."""
    theirs = _followed(own)[1]
    buffers = {arg for arg, pointer, _ in _taken(baseline, theirs) if pointer} | {s.name for s in candidate.scratch}
    return next(
        (name for arg, pointer, name in _taken(candidate, _followed(source)[1]) if arg in buffers and not pointer), None
    )


def _taken(plan: Plan, kernels: dict[str, tuple[Taken, ...]]) -> Iterator[tuple[object, bool, str]]:
    """Of each argument of a plan's launches: it, whether it is taken as a pointer, and by which parameter."""
    for launch in plan.launches:
        taken = kernels.get(function_name(launch.entry), ())
        if len(taken) == len(launch.args):  # what does not fit is refused elsewhere
            templates = template_arguments(launch.entry)
            yield from ((arg, p.points(templates), p.name) for arg, p in zip(launch.args, taken, strict=True))


@lru_cache(maxsize=8)  # an original stays the same over many candidates
def _followed(source: str) -> tuple[tuple[tuple[int, str], ...], dict[str, tuple[Taken, ...]]]:
    """The misuses of a text, and of each kernel its parameters."""
    code = source.encode("latin-1", "replace").decode("latin-1")
    names = Names()
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deepest, _DEPTH))  # a sum of many terms is as deep as it is long
    try:
        faults = _settled(names, code)
    except (TooMuch, RecursionError):
        faults = {names.base: "what is nested too deeply to be followed"}
    finally:
        sys.setrecursionlimit(deepest)
    return tuple(sorted(faults.items())), names.taken_by_kernels()


def _settled(names: Names, code: str) -> dict[int, str]:
    """The faults of the last of as many readings as change something."""
    pieces: list[tuple[int, Node]] = []
    for item in flat(parse_items(code, strict=False)):
        if item.kind in ("function", "record", "variable", "alias"):
            piece = code[item.start : item.end]
            pieces.append((item.start, syntax_tree(readable(blanks(piece)[0]))))
            names.base, names.kernel = item.start, "__global__" in item.head
            head = code[item.start : item.body or item.end] if names.kernel else ""
            tokens = [t for t in tokenize(head) if t.kind != "directive"]
            names.template = tuple((p.name, p.default) for p in template_parameters(tokens))
            names.collect(pieces[-1][1])
    for names.reading in range(1, _ROUNDS + 1):
        names.changed = False
        reader = _Statements(names, code)
        for names.base, tree in pieces:
            reader.read(tree)
        if not names.changed:
            break
    return reader.faults


class _Statements(Calls):
    """What statements do to variables."""

    # ------------------------------------------------ functions

    def _function_definition(self, node: Node) -> Value:
        function = self.names.function(node)
        record = function.record
        self.names.scopes.append(dict(record.fields) if record is not None else {})  # type: ignore[arg-type]
        for child in node.named_children:
            if child.type == "field_initializer_list":
                self._within(function, child)
        self._within(function, function.body)
        self.names.scopes.pop()
        return NUMBER

    def _within(self, function: Function, body: Node | None) -> None:
        scope = {p.key[1]: p.key for p in function.parameters} | {k[1]: k for k in function.templates}
        self.names.scopes.append(scope)
        self.inside.append(function)
        self.read(body)
        self.inside.pop()
        self.names.scopes.pop()

    def _lambda_expression(self, node: Node) -> Value:
        function = self.names.function(node)
        captures = node.child_by_field_name("captures")
        self.names.scopes.append({})
        for child in () if captures is None else captures.named_children:
            name, value = child.child_by_field_name("left"), child.child_by_field_name("right")
            if name is not None:
                self.give(self.names.declare(name, Type("auto")), Type("auto"), self.read(value), child)
        self._within(function, function.body)
        self.names.scopes.pop()
        return NUMBER

    def _field_initializer(self, node: Node) -> Value:
        name, values = node.named_children[0], [self.read(c) for c in node.named_children[1:]]
        key = self.names.key(text_of(name))
        if key is not None and values:
            self.give(key, self.names.types.get(key, Type("auto")), values[0], node)
        return NUMBER

    def _return_statement(self, node: Node) -> Value:
        value = NUMBER
        for child in node.named_children:
            value = self.read(child) if child.type != "comment" else value
        function = self.inside[-1] if self.inside else None
        if function is not None:
            if function.name == "operator" and value.kind in ("place", "shared") and value.whole:
                return self.fault(node)
            if function.returns.stars and value.kind == "place":
                value = replace(value, whole=False)
            before = function.result
            function.result = value if before == NUMBER else joined(before, value)
            self.names.changed |= function.result != before
        return NUMBER

    def _switch_statement(self, node: Node) -> Value:
        asked = node.child_by_field_name("condition")
        if asked is not None and self._inner(asked).kind in ("place", "shared", "low"):
            self.fault(asked)
        return self.read(node.child_by_field_name("body"))

    def _inner(self, node: Node) -> Value:
        value = NUMBER
        for child in node.named_children:
            value = self.read(child)
        return value

    def _argument_list(self, node: Node) -> Value:
        return self._inner(node)

    def _parenthesized_expression(self, node: Node) -> Value:
        return self._inner(node)

    # ------------------------------------------------ conditions

    def _condition_clause(self, node: Node) -> Value:
        value = self._inner(node)
        self.asked(node, value)
        return value

    def _for_statement(self, node: Node) -> Value:
        self.names.scopes.append({})
        condition = node.child_by_field_name("condition")
        for child in node.named_children:
            if child.type != "comment":
                value = self.read(child)
                if condition is not None and child.id == condition.id:
                    self.asked(child, value)
        self.names.scopes.pop()
        return NUMBER

    def _conditional_expression(self, node: Node) -> Value:
        test = node.child_by_field_name("condition")
        self.asked(test, self.read(test))
        return joined(*(self.read(node.child_by_field_name(f)) for f in ("consequence", "alternative")))

    # ------------------------------------------------ declarations

    def _declaration(self, node: Node) -> Value:
        inner = node.child_by_field_name("type")
        if inner is not None and inner.type.endswith("specifier") and inner.child_by_field_name("body") is not None:
            self.read(inner)
        for child in node.children_by_field_name("declarator"):
            self._declared(base_of(inner), child)
        return NUMBER

    _field_declaration = _declaration

    def _declared(self, base: str, node: Node) -> None:
        value_node = node.child_by_field_name("value") if node.type == "init_declarator" else None
        written = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
        if written is not None and written.type == "structured_binding_declarator":
            value = self.read(value_node)
            for child in written.named_children:
                self.give(self.names.declare(child, Type("auto")), Type("auto"), value, node)
            return
        found = declarator(written)
        if found.function is not None and not found.stars and value_node is None:
            self._parameters_or_values(base, found.name, found.function)
            return
        if found.name is None:
            return
        type_ = Type(base, found.stars, found.dims, found.reference)
        if value_node is not None and value_node.type == "lambda_expression":
            self.read(value_node)
            key = self.names.declare(found.name, type_)
            self.names.lambdas[key] = self.names.base + value_node.start_byte
            return
        self._initialised(node, type_, found.name, value_node)

    def _parameters_or_values(self, base: str, name: Node | None, function: Node) -> None:
        """``u64 v(p);``, which reads as the head of a function."""
        listed = function.child_by_field_name("parameters")
        words = [] if listed is None else [text_of(c) for c in listed.named_children]
        if name is not None and words and all(self.names.key(w.split("[")[0].strip()) for w in words):
            key = self.names.declare(name, Type(base))
            self.give(key, Type(base), self._named(words[0]), function)

    def _initialised(self, node: Node, type_: Type, name: Node, given: Node | None) -> None:
        plain = self.names.resolved(type_)
        listed = given is not None and given.type in ("initializer_list", "argument_list")
        values = [self.read(c) for c in given.named_children if c.type != "comment"] if listed else []  # type: ignore[union-attr]
        whole = NUMBER if listed or given is None else self.read(given)
        key = self.names.declare(name, type_)
        if plain.base in self.names.records and not plain.stars and not plain.dims:
            if listed or whole.kind == "place":
                self.names.join(key, self.made(plain.base, values or [whole]))
            return
        if plain.dims and listed:
            for value in values:
                self.put(node, self.names.values[key], value)
        elif given is not None:
            value = values[0] if values else constant(0) if listed else whole
            if plain.dims and given.type == "string_literal":
                return
            self.give(key, type_, value, node)

    def _for_range_loop(self, node: Node) -> Value:
        self.names.scopes.append({})
        value = self.read(node.child_by_field_name("right"))
        found = declarator(node.child_by_field_name("declarator"))
        if found.name is not None:
            type_ = Type(base_of(node.child_by_field_name("type")), found.stars, 0, found.reference)
            element = followed(value) if value.kind == "place" else value
            self.give(self.names.declare(found.name, type_), type_, element, node)
        self.read(node.child_by_field_name("body"))
        self.names.scopes.pop()
        return NUMBER

    def give(self, key: Key, type_: Type, value: Value, node: Node) -> None:
        """A variable gets a value of any type."""
        plain = self.names.resolved(type_)
        if plain.base in FLOATS and not plain.stars + plain.dims and value.kind in ("place", "shared"):
            self.fault(node)
            return
        if plain.base == "bool" and not plain.stars + plain.dims:
            self.asked(node, value)
            return
        into = plain.reference and not plain.stars and plain.base not in self.names.dependent
        if value.kind == "place" and into and key in self.names.given:
            self.fault(node)  # where it goes no one sees
        if plain.stars and value.null:
            value = Value("place", plain.stars, roots=frozenset([NULL]))
        if plain.stars and value.kind != "place":
            value = Value("place", plain.stars, roots=frozenset([key]))
        if value.kind == "place" and not plain.stars + plain.dims and plain.base not in self.names.dependent:
            value = replace(value, whole=True)
        if not plain.dims:
            value = replace(value, array=value.array and plain.reference)
        if plain.base in self.names.dependent and self.names.values.get(key) == self.names.first(type_, key):
            self.names.values[key] = replace(self.names.values[key], whole=value.whole, type=value.type)
        if plain.reference and value.kind == "" and value.constants is not None:
            value = replace(value, constants=None)
        self.names.join(key, value)

    # ------------------------------------------------ assignments

    def _assignment_expression(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), self.read(node.child_by_field_name("right"))
        bound = self._bracketed(left)
        if bound is not None:
            self.give(self.names.declare(bound, Type("auto")), Type("auto"), right, node)
            return right
        op = text_of(node.child_by_field_name("operator"))
        op = WORDS.get(op, op)
        if op != "=":
            old = self.read(left)
            right = self.guarded(node, lambda: binary(op[:-1], old, right, self.same))
        if left is not None:
            self.assign(left, right, node)
        return right

    def _bracketed(self, node: Node | None) -> Node | None:
        """The name of ``float (&v)[2] = w;``, which the grammar takes for a call."""
        while node is not None and node.type == "subscript_expression":
            node = node.child_by_field_name("argument")
        callee = node.child_by_field_name("function") if node is not None and node.type == "call_expression" else None
        listed = node.child_by_field_name("arguments") if node is not None and callee is not None else None
        if listed is None or listed.named_child_count != 1 or not self.names.is_type(text_of(callee)):
            return None
        inner = listed.named_children[0]
        name = inner.child_by_field_name("argument") if inner.type == "pointer_expression" else None
        return name if name is not None and name.type == "identifier" else None

    def _update_expression(self, node: Node) -> Value:
        inner = node.child_by_field_name("argument")
        value = self.guarded(node, lambda: binary("+", self.read(inner), Value(whole=True), self.same))
        if inner is not None:
            self.assign(inner, value, node)
        return value

    def assign(self, target: Node, value: Value, node: Node) -> None:
        """``target = value``."""
        while target.type == "parenthesized_expression" and target.named_children:
            target = target.named_children[-1]
        if target.type == "identifier":
            key = self.names.key(text_of(target))
            if key is not None:
                self.give(key, self.names.types.get(key, Type("auto")), value, node)
        elif target.type == "field_expression":
            owner = self.read(target.child_by_field_name("argument"))
            key = self._field(owner, text_of(target.child_by_field_name("field")))
            if key is not None:
                self.give(key, self.names.types.get(key, Type("auto")), value, node)
            elif value.kind in ("place", "shared") and value.whole:
                self.fault(node)
        elif target.type in ("subscript_expression", "pointer_expression"):
            self.read(target)
            self.put(node, self.read(target.child_by_field_name("argument")), value)
        elif value.kind in ("place", "shared"):
            self.read(target)
            if self.read(target).kind != "place":
                self.fault(node)
        else:
            self.read(target)

    # ------------------------------------------------ assembly

    def _gnu_asm_expression(self, node: Node) -> Value:
        code = node.child_by_field_name("assembly_code")
        template = "".join(_strings(code)) if code is not None else ""
        outputs: list[tuple[str, Node]] = []
        given: dict[str, str] = {}
        origins: dict[str, Value] = {}
        index = 0
        for field in ("output_operands", "input_operands"):
            listed = node.child_by_field_name(field)
            for operand in () if listed is None else listed.named_children:
                if not operand.type.endswith("operand"):
                    continue
                symbol = text_of(operand.child_by_field_name("symbol"))
                value_node = operand.child_by_field_name("value")
                value = self.read(value_node)
                read = field == "input_operands" or "+" in text_of(operand.child_by_field_name("constraint"))
                for name in (f"%{index}", f"%[{symbol}]"):
                    if read and value.kind in ("place", "shared"):
                        given[name], origins[name] = value.kind, value
                    if field == "output_operands" and value_node is not None:
                        outputs.append((name, value_node))
                index += 1
        try:
            held = carried(template, given)
        except Misuse:
            return self.fault(node)
        for name, target in outputs:
            if name in held and (name not in given or held[name] != given[name]):
                made = Value("shared", whole=True) if held[name] == "shared" else _from(origins)
                self.assign(target, made, node)
        return NUMBER


def _from(origins: dict[str, Value]) -> Value:
    """What a register holds that one of these went into."""
    made = Value("place", 1, whole=True, moved=True)
    for value in origins.values():
        made = joined(made, value)
    return made


def _strings(node: Node) -> Iterator[str]:
    if node.type == "string_content" or node.type == "escape_sequence":
        yield text_of(node)
    for child in node.children:
        yield from _strings(child)
