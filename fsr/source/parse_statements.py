"""Statements of a syntax tree as the loop-nest form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from fsr.hardware.c_types import BY_SPELLING
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
    Jump,
    Literal,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Return,
    Scope,
    Span,
    Stmt,
    While,
)  # fmt: skip
from fsr.source.loop_heads import counted_parts, has_continue
from fsr.source.parse_expressions import expression
from fsr.source.types import plain_type

if TYPE_CHECKING:
    from tree_sitter import Node

ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_PLAIN = re.compile(r"[A-Za-z_]\w*(?:\.\w+)?")  # a variable, or a member of one
_ONE = Literal("1")
_CLASSES = frozenset(["float16", "bfloat16"])  # of a number's size, but with constructors
_NUMBERS = frozenset(spelling for spelling, type_ in BY_SPELLING.items() if type_.dtype not in _CLASSES)


def squeeze(text: str) -> str:
    """The text on one line, blanks merged, a star set off from the base type: ``const float *``."""
    text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)).strip()
    return re.sub(r"\s*([*&]+)\s*", r" \1", text) if re.search(r"[\w>]\s*[*&]", text) and "(" not in text else text


class Reader:
    """Reads the statements of one kernel. ``piece`` is its text, ``taken`` what was blanked out of it (offsets
    within the piece), ``base`` the offset of the piece in the file, added to every span."""

    def __init__(self, piece: bytes, taken: list[Blank], base: int) -> None:
        self.piece, self.taken, self.base = piece, taken, base

    def text(self, node: Node) -> str:
        """The node's text as the user wrote it, blanked-out parts included."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        return self.piece[start:end].decode("utf-8", "replace")

    def expression(self, node: Node | None) -> Expr:
        """The node as an expression; None is no expression at all."""
        return OpaqueExpr("") if node is None else expression(self.piece, node)

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
                return [For(loop.type, loop.var, loop.start, loop.relation, loop.bound, loop.step, loop.body, texts,
                            loop.span)]  # fmt: skip
            case [While() as loop]:
                return [While(loop.test, loop.body, texts, loop.span)]
            case [Scope((first, While() as loop), span)]:
                return [Scope((first, While(loop.test, loop.body, texts, loop.span)), span)]
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
                return [self._if(node)]
            case "for_statement":
                return [self._for(node)]
            case "while_statement":
                header = _header(node, "condition")
                return [While(self._condition(header), self._body(node.child_by_field_name("body"), header.end_byte),
                              (), span)]  # fmt: skip
        if node.has_error:
            return None
        match node.type:
            case "expression_statement" if (name := _named_after_brackets(self.text, node)) is not None:
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
            if target is not None and value is not None:
                several = self._stepped(target, value, operator, span) or self._chained(target, value, operator, span)
                if several:
                    return several
            return [Assign(self.expression(target), self.text(operator), self.expression(value), span)]
        if node.type == "update_expression":
            operator = node.child_by_field_name("operator")
            sign = "+=" if operator is not None and self.text(operator) == "++" else "-="
            return [Assign(self.expression(node.child_by_field_name("argument")), sign, _ONE, span)]
        return [ExprStmt(self.expression(node), span)]

    def _stepped(self, target: Node, value: Node, operator: Node, span: Span) -> list[Stmt] | None:
        """``last = i++`` of two variables as two statements."""
        stepped = value.child_by_field_name("argument") if value.type == "update_expression" else None
        if stepped is None or {target.type, stepped.type} != {"identifier"} or self.text(target) == self.text(stepped):
            return None
        step = self._effect(value, span)
        change = Assign(self.expression(target), self.text(operator), self.expression(stepped), span)
        return [*step, change] if stepped.start_byte > value.start_byte else [change, *step]

    def _chained(self, target: Node, value: Node, operator: Node, span: Span) -> list[Stmt] | None:
        """``a = v.x = c`` of variables and members as a statement each, the last one first: each gets what the one
        behind it holds."""
        inner = value.child_by_field_name("left") if value.type == "assignment_expression" else None
        if inner is None or not all(_PLAIN.fullmatch(self.text(e)) for e in (target, inner)):
            return None
        change = Assign(self.expression(target), self.text(operator), self.expression(inner), span)
        return [*self._effect(value, span), change]

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
            found.append(Declare(type_, name, init, dims, self._qualifiers(node), self._span(node)))
        if not found:
            raise _Inexpressible
        return found

    def _qualifiers(self, node: Node) -> tuple[str, ...]:
        found: list[tuple[int, str]] = [
            (c.start_byte, self.text(c)) for c in node.children if _is_qualifier(self.text(c), c)
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
            init = self._initial(value, base, "array_declarator" if _is_array(inner) else inner.type)
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
                if not _is_qualifier(self.text(child), child) and self.text(child) != "register":
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
        if _is_plain(bare, declarator_type) and len(inner) <= 1:
            if any(c.type in ("initializer_list", "initializer_pair") for c in inner):
                raise _Inexpressible
            return self.expression(inner[0]) if inner else Literal("0")
        if _after_equals(value) or (declarator_type == "array_declarator" and value.type == "initializer_list"):
            return self.expression(value)
        if declarator_type != "identifier" or not re.fullmatch(r"[\w:]+(<[^<>]*>)?", bare) or bare == "auto":
            raise _Inexpressible
        if value.type == "argument_list":
            return Call(Name(bare), tuple(self.expression(a) for a in inner))
        return OpaqueExpr(bare + squeeze(self.text(value)))

    # ------------------------------------------------------------ for loops

    def _for(self, node: Node) -> Stmt:
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
        counted = counted_parts(init, test, update)
        if counted is not None:
            type_, var, start, relation, bound, step = counted
            return For(type_, var, start, relation, bound, step, body, (), self._span(node))
        return self._while(node, init, test, body, update)

    def _for_init(self, node: Node | None) -> list[Stmt]:
        if node is None:
            return []
        if node.type == "declaration":
            return self._declaration(node)
        return self._effect(node, self._span(node))

    def _while(self, node: Node, init: list[Stmt], test: Expr, body: tuple[Stmt, ...], update: list[Stmt]) -> Stmt:
        if update and has_continue(body):
            raise _Inexpressible
        loop = While(test, (*body, *update), (), self._span(node))
        return Scope((*init, loop), self._span(node)) if init else loop


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


def _named_after_brackets(text: Callable[[Node], str], node: Node) -> Node | None:
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


def _is_array(declarator: Node | None) -> bool:
    """Whether a declarator has extents, of pointers too (``*rows[2]``)."""
    if declarator is None or declarator.type not in ("pointer_declarator", "array_declarator"):
        return False
    return declarator.type == "array_declarator" or _is_array(declarator.child_by_field_name("declarator"))


def _is_plain(base: str, declarator_type: str) -> bool:
    """Whether what is declared is a number or a pointer: initialised alike with ``=``, braces and parentheses."""
    if declarator_type == "pointer_declarator":
        return True
    return declarator_type == "identifier" and plain_type(base, {}) in _NUMBERS


def _after_equals(value: Node) -> bool:
    before = value.prev_sibling
    return before is not None and before.type == "="


def _is_qualifier(text: str, node: Node) -> bool:
    return node.type in ("type_qualifier", "storage_class_specifier") and text not in ("const", "volatile", "register")
