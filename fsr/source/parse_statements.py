"""Statements of a syntax tree as the loop-nest form."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from fsr.hardware.c_types import BY_SPELLING, LANES, NUMBERS
from fsr.source.blanks import Blank
from fsr.source.form import (
    Assign,
    Call,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Span,
    Stmt,
    While,
    number,
)  # fmt: skip
from fsr.source.loop_heads import Counted, counted_parts, has_continue, without_continue
from fsr.source.mapping import map_expr
from fsr.source.parse_control import branches, cases_of, repeated
from fsr.source.parse_expressions import expression
from fsr.source.parse_nodes import after_equals, is_array, is_plain, is_qualifier, named_after_brackets
from fsr.source.sequenced import apart, branching, repeating
from fsr.source.walk import integer, is_zero, names_in, names_mentioned, names_written, walk_expr

if TYPE_CHECKING:
    from tree_sitter import Node

ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_ONE = Literal("1")
_SIZE_OF = re.compile(r"sizeof\s*\(\s*(\w+(?: \w+)*)\s*\)")
_VECTORS = {f"{name}{n}": n for t in NUMBERS for name in t.vectors for n in (2, 3, 4)}  # made by make_ and its name


def squeeze(text: str) -> str:
    """The text on one line, blanks merged, a star set off from the base type: ``const float *``."""
    text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)).strip()
    return re.sub(r"\s*([*&]+)\s*", r" \1", text) if re.search(r"[\w>]\s*[*&]", text) and "(" not in text else text


class Reader:
    """Reads the statements of one kernel. ``piece`` is its text, ``taken`` what was blanked out of it (offsets
    within the piece), ``base`` the offset of the piece in the file, added to every span; ``types``: names of the file's
    that stand for types, or for what none of its variables is."""

    def __init__(self, piece: bytes, taken: list[Blank], base: int, types: Collection[str] = ()) -> None:
        self.piece, self.taken, self.base = piece, taken, base
        self.types = frozenset(types)

    def text(self, node: Node) -> str:
        """The node's text as the user wrote it, blanked-out parts included."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        return self.piece[start:end].decode("utf-8", "replace")

    def expression(self, node: Node | None) -> Expr:
        """The node as an expression; None is no expression at all."""
        found: Expr = OpaqueExpr("") if node is None else expression(self.piece, node)
        return map_expr(found, self._size) if node is not None and b"sizeof" in self.piece else found

    def _size(self, e: Expr) -> Expr:
        """``sizeof(float)``, which names nothing that a rewrite could change, as a number."""
        size = _SIZE_OF.fullmatch(e.text) if isinstance(e, OpaqueExpr) else None
        known = size is not None and (size[1] in self.types or size[1] in BY_SPELLING or size[1] in LANES)
        return Literal(e.text) if isinstance(e, OpaqueExpr) and known else e

    def _span(self, node: Node) -> Span:
        return node.start_byte + self.base, node.end_byte + self.base

    # ------------------------------------------------------------ blocks

    def block(self, node: Node) -> tuple[Stmt, ...]:
        """The statements between the braces of a compound statement."""
        inner = [c for c in node.children if c.type not in ("{", "}") or c.is_missing]
        return self._sequence(inner, node.start_byte, node.end_byte)

    def _sequence(self, nodes: list[Node], floor: int, ceiling: int) -> tuple[Stmt, ...]:
        """Statements in order; a pragma belongs to the loop that follows, any other stays where it was."""
        found: list[Stmt] = []
        for node in nodes:
            if node.start_byte < floor:
                continue
            pragmas = self._pragmas(floor, node.start_byte)
            if pragmas and node.type == "comment":
                found.append(Comment(self.text(node), self._span(node)))
                continue  # the pragma still waits for its loop
            found.extend(self._with_pragmas(pragmas, self.statements(node)))
            floor = node.end_byte
        found.extend(OpaqueStmt(p.text) for p in self._pragmas(floor, ceiling))
        return tuple(found)

    def _pragmas(self, start: int, end: int) -> list[Blank]:
        return [b for b in self.taken if b.kind == "pragma" and start <= b.start and b.end <= end]

    def _with_pragmas(self, pragmas: list[Blank], statements: list[Stmt]) -> list[Stmt]:
        if not pragmas:
            return statements
        texts = tuple(p.text for p in pragmas)
        match statements:
            case [For() as loop]:
                return [replace(loop, pragmas=texts)]
            case [While() as loop, *steps]:
                return [replace(loop, pragmas=texts), *steps]
            case [Scope((first, While() as loop, *steps), span)]:
                return [Scope((first, replace(loop, pragmas=texts), *steps), span)]
            case [OpaqueStmt(text, span)]:
                return [OpaqueStmt("\n".join((*texts, text)), span)]
        return [*(OpaqueStmt(t) for t in texts), *statements]

    def _body(self, node: Node | None, floor: int) -> tuple[Stmt, ...]:
        """A loop's or branch's body, braced or not; pragmas between the header's end and it count."""
        if node is None:
            return ()
        if node.type == "compound_statement":
            return self.block(node)
        return self._sequence([node], floor, node.end_byte)

    # ------------------------------------------------------------ statements

    def statements(self, node: Node) -> list[Stmt]:
        """One statement of the text: none (``;``), one, or one a declared variable."""
        try:
            found = self._read(node)
        except _Inexpressible:
            found = None
        return [self._opaque(node)] if found is None else found

    def _opaque(self, node: Node) -> OpaqueStmt:
        return OpaqueStmt(self.text(node), self._span(node))

    def _read(self, node: Node) -> list[Stmt] | None:
        span = self._span(node)
        match node.type:
            case "comment":
                return [Comment(self.text(node), span)]
            case "compound_statement":
                return [Scope(self.block(node), span)]
            case "if_statement":
                return branching(self._if(node))
            case "for_statement":
                return self._for(node)
            case "while_statement":
                header = _header(node, "condition")
                body = self._body(node.child_by_field_name("body"), header.end_byte)
                return repeating(While(self._condition(header), body, (), span))
            case "do_statement":
                return self._do(node)
            case "switch_statement":
                return self._switch(node)
        if node.has_error:
            return None
        match node.type:
            case "expression_statement" if (name := named_after_brackets(self.text, node)) is not None:
                return self._declared(node, name)
            case "expression_statement":
                return [s for child in node.named_children[:1] for s in self._effect(child, span)]
            case "declaration":
                return self._declaration(node)
            case "return_statement":
                values = [c for c in node.named_children if c.type != "comment"]
                return [Return(self.expression(values[0]) if values else None, span)]
            case "break_statement" | "continue_statement":
                return [Jump(node.type.removesuffix("_statement"), span)]
        return None

    def _effect(self, node: Node, span: Span) -> list[Stmt]:
        """An expression statement: an assignment, an increment, several of them after commas, or a call."""
        while node.type == "parenthesized_expression":
            node = _only(node.named_children)
        if node.type == "comma_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            return [s for part in (left, right) if part is not None for s in self._effect(part, span)]
        if node.type == "assignment_expression":
            target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = node.child_by_field_name("operator")
            if operator is None or self.text(operator) not in ASSIGNMENTS:
                raise _Inexpressible
            if value is not None and value.type == "assignment_expression":
                return self._in_turn(self.expression(target), self.text(operator), self._effect(value, span), span)
            found = apart(self.expression(target), self.expression(value), span=span)
            return [*found.before, Assign(found.exprs[0], self.text(operator), found.exprs[1], span), *found.after]
        if node.type == "update_expression":
            operator = node.child_by_field_name("operator")
            sign = "+=" if operator is not None and self.text(operator) == "++" else "-="
            return [Assign(self.expression(node.child_by_field_name("argument")), sign, _ONE, span)]
        found = apart(self.expression(node), span=span)
        return [*found.before, ExprStmt(found.exprs[0], span), *found.after]

    def _in_turn(self, target: Expr, operator: str, inner: list[Stmt], span: Span) -> list[Stmt]:
        """``a = b = c``: the inner one first, whose variable then holds what the outer one is given."""
        match inner[-1]:
            case Assign((Name(name) | Member(Name(name))) as given) if name not in names_in(target) or (
                isinstance(target, Member) and target.base == Name(name) != given
            ):
                return [*inner, Assign(target, operator, given, span)]
            case Assign(value=value, op="=") if operator == "=" and is_zero(value) and len(inner) == 1:
                return [*inner, Assign(target, operator, value, span)]
        raise _Inexpressible

    def _do(self, node: Node) -> list[Stmt] | None:
        body, opening = node.child_by_field_name("body"), node.children[0].end_byte
        test = self._condition(_header(node, "condition"))
        return repeated(self._body(body, opening), test, self._before(node), self._span(node))

    def _before(self, node: Node) -> Stmt | None:
        """The statement in front of one, where that is one."""
        sibling = node.prev_named_sibling
        while sibling is not None and sibling.type == "comment":
            sibling = sibling.prev_named_sibling
        found = [] if sibling is None else self.statements(sibling)
        return found[-1] if found else None

    def _switch(self, node: Node) -> list[Stmt] | None:
        header, body = _header(node, "condition"), _header(node, "body")
        subject = self._condition(header)
        cases = cases_of(body, self.expression, self._sequence)
        found = None if cases is None else branches(subject, cases, self._span(node))
        return None if found is None else [found]

    def _declared(self, node: Node, name: Node) -> list[Stmt] | None:
        """A declaration whose type, ``ns::tile<32>``, was read as two comparisons."""
        whole = node.named_children[0].child_by_field_name("right")
        if whole is None or whole.type == "call_expression":
            return None
        value = whole.child_by_field_name("right")
        type_ = self.slice(node.start_byte, name.start_byte).strip()
        init = None if value is None else self.expression(value)
        return [Declare(type_, self.text(name), init, (), (), self._span(node))]

    def _condition(self, node: Node) -> Expr:
        """The expression of a condition clause. Declarations and errors in it are not expressible."""
        inner = [c for c in node.named_children if c.type != "comment"]
        value = _only(inner)
        if node.has_error or value.type in ("declaration", "init_statement", "condition_declaration"):
            raise _Inexpressible
        return self.expression(value)

    def _if(self, node: Node) -> If:
        header = _header(node, "condition")
        test = self._condition(header)
        constexpr = any(c.type == "constexpr" for c in node.children)
        then = self._body(node.child_by_field_name("consequence"), header.end_byte)
        orelse: tuple[Stmt, ...] = ()
        alternative = node.child_by_field_name("alternative")
        if alternative is not None:
            keyword, *rest = [c for c in alternative.children if c.type != "comment"]
            orelse = self._body(_only(rest), keyword.end_byte)
        return If(test, then, orelse, constexpr, self._span(node))

    # ------------------------------------------------------------ declarations

    def _declaration(self, node: Node) -> list[Stmt]:
        found: list[Stmt] = []
        for declarator in node.children_by_field_name("declarator"):
            variable = self._declarator(node, declarator)
            if variable is None:
                raise _Inexpressible
            type_, name, dims, init = variable
            if listed := self._listed(declarator, type_, dims):
                own = type_.removeprefix("const ")
                found += [Declare(own, name, None, dims, self._qualifiers(node), self._span(node))]
                found += [
                    Assign(Index(Name(name), number(at)), "=", e, self._span(node)) for at, e in enumerate(listed)
                ]
                continue
            steps = apart(*(() if init is None else (init,)), span=self._span(node))
            init = steps.exprs[0] if steps.exprs else None
            declared = Declare(type_, name, init, dims, self._qualifiers(node), self._span(node))
            found += [*steps.before, declared, *steps.after]
        if not found:
            raise _Inexpressible
        return found

    def _listed(self, declarator: Node, type_: str, dims: tuple[Expr, ...]) -> list[Expr]:
        """The values that an array of numbers is given one by one, where some are not known before."""
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        numbers = is_plain(type_.removeprefix("const "), "identifier")
        if value is None or value.type != "initializer_list" or not numbers:
            return []
        inner = [c for c in value.named_children if c.type != "comment"]
        if len(dims) != 1 or integer(dims[0]) != len(inner) or any("init" in c.type for c in inner):
            return []
        found = [self.expression(c) for c in inner]
        return found if any(isinstance(e, Name) for one in found for e in walk_expr(one)) else []

    def _qualifiers(self, node: Node) -> tuple[str, ...]:
        found: list[tuple[int, str]] = [
            (c.start_byte, self.text(c)) for c in node.children if is_qualifier(self.text(c), c)
        ]
        found += [
            (b.start, b.text)
            for b in self.taken
            if node.start_byte <= b.start and b.end <= node.end_byte and b.kind in ("__align__", "alignas")
        ]
        return tuple(text for _, text in sorted(found))

    def variable(self, node: Node) -> tuple[str, str, tuple[Expr, ...]] | None:
        """Type with stars, name and extents of a parameter; None when it is of another shape."""
        declarator = node.child_by_field_name("declarator")
        if declarator is None or node.has_error:
            return None
        found = self._declarator(node, declarator)
        return None if found is None or found[3] is not None else found[:3]

    def _declarator(self, node: Node, declarator: Node) -> tuple[str, str, tuple[Expr, ...], Expr | None] | None:
        """Type, name, extents and initial value of one declared name."""
        base, init = self._base_type(node), None
        if declarator.type == "init_declarator":
            inner, value = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
            if inner is None or value is None:
                return None
            init = self._initial(value, base, "array_declarator" if is_array(inner) else inner.type)
            declarator = inner
        stars, dims = "", list[Expr]()
        while declarator.type in ("pointer_declarator", "array_declarator", "reference_declarator"):
            if declarator.type == "array_declarator":
                dims.insert(0, self.expression(declarator.child_by_field_name("size")))
            else:
                stars += "".join(
                    self.text(c) if c.type in ("*", "&", "&&") else f" {self.text(c)}"
                    for c in declarator.children
                    if c.type in ("*", "&", "&&", "type_qualifier", "ms_restrict_modifier")
                )
            inner = declarator.child_by_field_name("declarator")
            declarator = inner if inner is not None else declarator.named_children[-1]
        if declarator.type != "identifier":
            return None
        return squeeze(f"{base} {stars}"), self.text(declarator), tuple(dims), init

    def _base_type(self, node: Node) -> str:
        words = []
        for child in node.children:
            if child.type in ("type_qualifier", "storage_class_specifier"):
                if not is_qualifier(self.text(child), child) and self.text(child) != "register":
                    words.append(self.text(child))  # register says nothing to a compiler of today
            elif child == node.child_by_field_name("type"):
                words.append(self.text(child))
        return squeeze(" ".join(words))

    def _initial(self, value: Node, base: str, declarator_type: str) -> Expr:
        """An initial value; ``int i{a}`` and ``int i(a)`` become ``int i = a``, and with types that may have
        constructors ``T x(a, b)`` and ``T x{a}`` become ``T x = T(a, b)`` and ``T x = T{a}``."""
        if value.type not in ("argument_list", "initializer_list"):
            return self.expression(value)
        inner = [c for c in value.named_children if c.type != "comment"]
        bare = base.removeprefix("const ").removeprefix("constexpr ")
        if is_plain(bare, declarator_type) and len(inner) <= 1:
            if any(c.type in ("initializer_list", "initializer_pair") for c in inner):
                raise _Inexpressible
            return self.expression(inner[0]) if inner else Literal("0")
        if declarator_type == "identifier" and value.type == "initializer_list" and (made := self._vector(bare, inner)):
            return made
        if after_equals(value) or (declarator_type == "array_declarator" and value.type == "initializer_list"):
            return self.expression(value)
        if declarator_type != "identifier" or not re.fullmatch(r"[\w:]+(<[^<>]*>)?", bare) or bare == "auto":
            raise _Inexpressible
        if value.type == "argument_list":
            return Call(Name(bare), tuple(self.expression(a) for a in inner))
        return OpaqueExpr(bare + squeeze(self.text(value)))

    def _vector(self, type_: str, values: list[Node]) -> Expr | None:
        """``float3 v = {x, y}`` as ``make_float3(x, y, 0)``."""
        lanes = _VECTORS.get(type_, 0)
        if not 0 < len(values) <= lanes or any(v.type in ("initializer_list", "initializer_pair") for v in values):
            return None
        given = [self.expression(v) for v in values]
        return Call(Name(f"make_{type_}"), (*given, *[Literal("0")] * (lanes - len(given))))

    # ------------------------------------------------------------ for loops

    def _for(self, node: Node) -> list[Stmt]:
        opening = next(c for c in node.children if c.type == "(")
        closing = next((c for c in node.children if c.type == ")"), None)
        body_node = node.child_by_field_name("body")
        if closing is None or body_node is None or closing.is_missing:
            raise _Inexpressible
        parts = [c for c in node.children if opening.end_byte <= c.start_byte < closing.start_byte]
        if any(c.has_error or c.type == "ERROR" for c in parts):
            raise _Inexpressible
        body = self._body(body_node, closing.end_byte)
        init = self._for_init(node.child_by_field_name("initializer"))
        condition, update_node = node.child_by_field_name("condition"), node.child_by_field_name("update")
        update = [] if update_node is None else self._effect(update_node, self._span(update_node))
        test = Literal("true") if condition is None else self.expression(condition)
        for at in range(max(1, len(update))):
            counted, others = counted_parts(init, test, update[at : at + 1]), (*update[:at], *update[at + 1 :])
            turn = without_continue(body) if others else body
            if counted is not None and turn is not None and _independent(counted, others):
                type_, var, start, relation, bound, step = counted
                return [For(type_, var, start, relation, bound, step, (*turn, *others), (), self._span(node))]
        return self._while(node, init, test, body, update)

    def _for_init(self, node: Node | None) -> list[Stmt]:
        if node is None:
            return []
        if node.type == "declaration":
            return self._declaration(node)
        return self._effect(node, self._span(node))

    def _while(
        self, node: Node, init: list[Stmt], test: Expr, body: tuple[Stmt, ...], update: list[Stmt]
    ) -> list[Stmt]:
        if update and has_continue(body):
            plain = without_continue(body)
            if plain is None:
                raise _Inexpressible
            body = plain
        loop = repeating(While(test, (*body, *update), (), self._span(node)))
        return [Scope((*init, *loop), self._span(node))] if init else loop


def _independent(counted: Counted, others: tuple[Stmt, ...]) -> bool:
    """Whether what else a loop's head steps may be stepped at the end of a turn, before the counter is."""
    _, var, _, _, bound, step = counted
    return var not in names_mentioned(others) and not names_written(others) & (names_in(bound) | names_in(step))


class _Inexpressible(Exception):  # noqa: N818  # not an error: the statement stays verbatim
    """Raised within this module when a statement has no form."""


def _only(nodes: list[Node]) -> Node:
    if len(nodes) != 1:
        raise _Inexpressible
    return nodes[0]


def _header(node: Node, field: str) -> Node:
    found = node.child_by_field_name(field)
    if found is None:
        raise _Inexpressible
    return found
