"""The top-level items of a CUDA file: what each one is, what it declares, which names it uses.

No types are resolved and nothing is expanded; this is for cutting text along the seams of declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from fsr.errors import SourceError
from fsr.source.conditionals import IF, closed_outside, directive_name, endif_of, follow_conditional
from fsr.source.macros import macros_of
from fsr.source.tokens import Token, close_angle, close_of, line_of, tokenize

CONTAINERS = ("namespace", "linkage")
RECORDS = ("struct", "class", "union", "enum")
ATTRIBUTES = frozenset((
    "__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__align__", "alignas",
    "__attribute__", "__declspec", "noexcept",
))  # fmt: skip
CONDITIONALS = frozenset((
    "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One top-level item: ``text[start:end]``.

    ``kind``: include, define, undef, conditional, directive, namespace, linkage (``extern "C" {``), function,
    prototype, record, alias, using, variable, call (of a macro), assertion, instantiation or empty.
    ``names``: what it declares. ``head``: the identifiers before any body or initialiser. ``uses``: every
    identifier in it, those after ``.`` and ``->`` left out. ``body``: offset of the opening brace of a
    function or container. ``children``: the items of a container, which ends with its closing brace.
    """

    kind: str
    start: int
    end: int
    names: tuple[str, ...] = ()
    head: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    body: int | None = None
    children: tuple[Item, ...] = field(default=(), repr=False)

    def walk(self) -> Iterator[Item]:
        """This item and, for containers, everything inside."""
        yield self
        for child in self.children:
            yield from child.walk()


@lru_cache(maxsize=128)  # each action that looks at a file asks for them
def parse_items(text: str, path: str = "", strict: bool = True) -> tuple[Item, ...]:
    """The items of a whole file, in order.

    Raises SourceError where a bracket never closes, if ``strict``; otherwise such a bracket reaches to the end.
    """
    tokens = tokenize(text)
    return tuple(_Parser(text, tokens, path, strict).items(0, len(tokens)))


def flat(items: Sequence[Item]) -> Iterator[Item]:
    """All items that are no namespaces or linkage blocks, those inside such among them."""
    for item in items:
        if item.kind in CONTAINERS:
            yield from flat(item.children)
        else:
            yield item


def standing_for(items: Iterable[Item], words: frozenset[str]) -> frozenset[str]:
    """The words, and the macros that stand for them (``#define DEV __device__``), through others too."""
    short = [i for i in items if i.kind == "define" and i.names and len(i.uses) <= 8]
    found, size = words, 0
    while size != len(found):
        size = len(found)
        found |= {i.names[0] for i in short if i.uses & found}
    return found


class _Parser:
    def __init__(self, text: str, tokens: list[Token], path: str, strict: bool) -> None:
        self.text, self.tokens, self.path, self.strict = text, tokens, path, strict
        self.macros = {m.name for m in macros_of(tokens) if m.params is not None}

    def items(self, at: int, stop: int) -> list[Item]:
        found: list[Item] = []
        open_at: list[int] = []  # where in ``found`` the conditionals stand that are open
        while at < stop:
            token = self.tokens[at]
            if token.kind == "directive":
                item, after = _directive(token), at + 1
                name = directive_name(token.text)
                if name in IF:
                    open_at.append(len(found))
                elif name == "endif" and open_at:
                    open_at.pop()
                found.append(item)
            else:
                item, after = self.declaration(at, stop)
                found.append(item)
                ends, goes_on = (0, False) if item.kind in CONTAINERS else closed_outside(self.tokens[at:after])
                if goes_on:
                    after = endif_of(self.tokens, after - 1) + 1
                reach = min(ends + goes_on, len(open_at))
                if reach:  # it stands in several branches: the item begins with the #if and ends with the #endif
                    begin = open_at[-reach]
                    found[begin:] = [self.joined(found[begin:], max(item.end, self.tokens[after - 1].end))]
                    del open_at[-reach:]
            at = after
        return found

    def declaration(self, at: int, stop: int) -> tuple[Item, int]:
        """The item that begins at token ``at``, and the index after it."""
        first, index, tokens = at, at, self.tokens
        if self.is_macro_word(at, stop):
            return self.finish(at, at + 1, None, kind="call"), at + 1
        at_if: list[int] = []
        while index < stop:
            token = tokens[index]
            if token.kind == "directive":
                follow_conditional(token.text, 0, at_if)
            elif token.text == ";":
                return self.finish(first, index + 1, None), index + 1
            elif token.text == "{":
                if close_of(tokens, index) is None and not self.strict:
                    return self.finish(first, stop, None), stop
                close = self.close(index)
                kind = _brace_kind(tokens[first:index])
                if kind in CONTAINERS:
                    return self.container(kind, first, index, close), close + 1
                if kind == "function":
                    after = close + 1
                    if after < stop and tokens[after].text == ";":
                        after += 1
                    return self.finish(first, after, index), after
                index = close
            elif token.text in ("(", "["):
                close = self.close(index)
                if token.text == "(" and self.is_macro_call(first, index, close, stop):
                    return self.finish(first, close + 1, None, kind="call"), close + 1
                index = close
            elif token.text in ("}", ")", "]") and self.strict:
                raise self.unbalanced(token, "closes nothing")
            index += 1
        return self.finish(first, stop, None), stop

    def joined(self, items: Sequence[Item], end: int) -> Item:
        """Items from an ``#if`` up to the one that holds its ``#else`` or ``#endif``, as one of that one's kind."""
        inside = [t for t in self.tokens if items[0].start <= t.start < end]
        head = frozenset[str]().union(*(i.head for i in items))
        return replace(items[-1], start=items[0].start, end=end, head=head, uses=frozenset(used_names(inside)))

    def close(self, index: int) -> int:
        close = close_of(self.tokens, index)
        if close is None and self.strict:
            raise self.unbalanced(self.tokens[index], "never closes")
        return len(self.tokens) - 1 if close is None else close

    def unbalanced(self, token: Token, why: str) -> SourceError:
        return SourceError(
            f"the bracket {token.text!r} here {why}",
            expected="a file that nvcc compiles",
            where=f"{self.path}:{line_of(self.text, token.start)}",
            fix="correct the syntax; the compiler may tell more",
        )

    def is_macro_word(self, at: int, stop: int) -> bool:
        """``LIB_NAMESPACE_BEGIN`` alone on its line, or before ``namespace``: it may open what is not shown."""
        if not re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", self.tokens[at].text):
            return False
        after = self.tokens[at + 1] if at + 1 < stop else None
        if after is None or after.text == "namespace":
            return True
        alone = "\n" in self.text[self.tokens[at].end : after.start]
        telling = re.search(r"NAMESPACE|_(BEGIN|END|OPEN|CLOSE)\b", self.tokens[at].text)
        return alone and (after.text in ("template", "using", "typedef") or telling is not None)

    def is_macro_call(self, first: int, index: int, close: int, stop: int) -> bool:
        """``DEFINE_OP(add, +)`` alone on its line, without a semicolon."""
        if index != first + 1 or self.tokens[first].kind != "name":
            return False
        name = self.tokens[first].text
        if name not in self.macros and not re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", name):
            return False
        if close + 1 >= stop:
            return True
        after = self.tokens[close + 1]
        if after.text in ("{", ";", ":", "(", "[") or after.text in ATTRIBUTES:
            return False
        return "\n" in self.text[self.tokens[close].end : after.start]

    def container(self, kind: str, first: int, brace: int, close: int) -> Item:
        head = self.tokens[first:brace]
        names = tuple(t.text for t in head if t.kind == "name" and t.text not in ("namespace", "inline", "extern"))
        children = tuple(self.items(brace + 1, close))
        start, end = self.tokens[first].start, self.tokens[close].end
        return Item(kind, start, end, names, body=self.tokens[brace].start, children=children)

    def finish(self, first: int, after: int, body: int | None, kind: str = "") -> Item:
        """The item of the tokens from ``first`` up to ``after``; ``body``: the token that opens its body."""
        tokens = self.tokens[first:after]
        head = self.tokens[first : body if body is not None else after]
        kind = kind or _kind(head, body is not None)
        names = () if kind == "call" else declared_names(kind, head)
        return Item(
            kind,
            tokens[0].start,
            tokens[-1].end,
            names,
            head=frozenset(t.text for t in _before_initialiser(head) if t.kind == "name"),
            uses=frozenset(used_names(tokens)),
            body=None if body is None else self.tokens[body].start,
        )


def _directive(token: Token) -> Item:
    name = directive_name(token.text)
    if name in CONDITIONALS:
        kind = "conditional"
    elif name in ("include", "define", "undef"):
        kind = name
    else:
        kind = "directive"
    rest = token.text[token.text.find(name) + len(name) :] if name else ""
    words = re.findall(r"[A-Za-z_]\w*", rest)
    names = tuple(words[:1]) if kind in ("define", "undef") else ()
    return Item(kind, token.start, token.end, names, uses=frozenset(words) if kind != "include" else frozenset())


def used_names(tokens: Sequence[Token]) -> Iterator[str]:
    """Identifiers in use; members (after ``.`` or ``->``) are left out, directives inside count."""
    previous = ""
    for token in tokens:
        if token.kind == "name" and previous not in (".", "->"):
            yield token.text
        elif token.kind == "directive":
            yield from re.findall(r"[A-Za-z_]\w*", token.text)
        previous = token.text


def strip_head(head: Sequence[Token]) -> list[Token]:
    """A declaration's head without ``template <...>``, attributes with their arguments, and directives."""
    found: list[Token] = []
    index = 0
    while index < len(head):
        token = head[index]
        if token.text == "template" and index + 1 < len(head) and head[index + 1].text == "<":
            index = close_angle(head, index + 1) or index + 1
        elif token.text in ATTRIBUTES:
            if index + 1 < len(head) and head[index + 1].text == "(":
                index = close_of(head, index + 1) or index + 1
        elif token.text == "[" and index + 1 < len(head) and head[index + 1].text == "[":
            index = close_of(head, index) or index
        elif token.kind != "directive":
            found.append(token)
        index += 1
    return found


def _brace_kind(tokens: Sequence[Token]) -> str:
    """What the brace after these tokens opens: namespace, linkage, function, record or initialiser."""
    head = strip_head(tokens)
    words = [t.text for t in head]
    if words[:1] == ["namespace"] or words[:2] == ["inline", "namespace"]:
        return "namespace"
    if len(head) == 2 and words[0] == "extern" and head[1].kind == "string":
        return "linkage"
    if _top_level(head, "=") is not None:
        return "initialiser"
    if _record_at(head) is not None and _top_level(head, "(") is None:
        return "record"
    return "function"


def _record_at(head: Sequence[Token]) -> int | None:
    """The index of struct, class, union or enum when it leads the declaration."""
    lead = ("typedef", "static", "const", "constexpr", "extern", "inline", "__device__", "__constant__", "__shared__")
    for index, token in enumerate(head):
        if token.text in RECORDS:
            return index
        if token.text not in lead:
            return None
    return None


def _top_level(tokens: Sequence[Token], wanted: str) -> int | None:
    """The index of a token outside brackets and template lists; ``operator=`` does not count."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == "operator":
            return None if wanted != "(" else index
        if token.text == wanted:
            return index
        if token.text in ("(", "[", "{"):
            index = close_of(tokens, index) or index
        elif token.text == "<":
            index = close_angle(tokens, index) or index
        index += 1
    return None


def _before_initialiser(head: Sequence[Token]) -> Sequence[Token]:
    at = _top_level(strip_head(head), "=")
    return head if at is None else strip_head(head)[:at]


def _kind(tokens: Sequence[Token], has_body: bool) -> str:
    head = strip_head(tokens)
    words = [t.text for t in head]
    first = words[0] if words else ""
    if not words or words == [";"]:
        return "empty"
    if first == "template" or words[:2] == ["extern", "template"]:
        return "instantiation"
    if first == "static_assert":
        return "assertion"
    if first == "typedef":
        return "alias"
    if first in ("using", "namespace"):
        return "alias" if "=" in words else "using"
    if has_body:
        return "variable" if _top_level(head, "(") is None else "function"  # int limit{3};
    at, equals = _top_level(head, "("), _top_level(head, "=")
    if _record_at(head) is not None and (at is None or any(t.text == "{" for t in head[:at])):
        return "record"
    if at is not None and (equals is None or at < equals or "operator" in words):
        return "call" if at == 1 else "prototype"
    return "variable"


def declared_names(kind: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """The names that an item declares. Qualified names give every part (``Vec::dot``: Vec and dot)."""
    head = strip_head(tokens)
    if kind in ("function", "prototype"):
        return _function_names(head)
    if kind == "alias":
        return _alias_names(head)
    if kind == "using":
        return tuple(t.text for t in head[-2:-1])
    if kind == "record":
        return _record_names(head)
    if kind == "variable":
        return tuple(_declarator_names(head))
    return ()


def parameters_at(head: Sequence[Token]) -> int | None:
    """The index of the parenthesis that opens a function's parameters, attributes that are macro calls passed over."""
    at = _top_level(head, "(")
    while at is not None and head[at].text == "(":
        close = close_of(head, at) or len(head) - 1
        following = _top_level(head[close + 1 :], "(")
        between = [t.text for t in head[close + 1 : close + 1 + (following or 0)]]
        named = between and re.fullmatch(r"[A-Za-z_]\w*", between[-1]) and not set(between) & {":", "->", "noexcept"}
        if not named or (len(between) == 1 and not head[at - 1].text.isupper()):
            break
        at = close + 1 + (following or 0)
    return at


def _function_names(head: Sequence[Token]) -> tuple[str, ...]:
    at = parameters_at(head)
    if at is None:
        return ()
    if head[at].text == "operator":
        return ("operator",)
    index = at - 1
    if index >= 0 and head[index].text in (">", ">>>"):  # a specialisation: step back over its arguments
        opening = _open_angle(head, index)
        index = opening - 1 if opening is not None else index
    names: list[str] = []
    while index >= 0 and head[index].kind == "name":
        names.append(head[index].text)
        if index == 0 or head[index - 1].text != "::":
            break
        index -= 2
    return tuple(reversed(names))


def _open_angle(tokens: Sequence[Token], at: int) -> int | None:
    return next((i for i in range(at - 1, -1, -1) if tokens[i].text == "<" and close_angle(tokens, i) == at), None)


def _alias_names(head: Sequence[Token]) -> tuple[str, ...]:
    if head[0].text != "typedef":
        return tuple(t.text for t in head[1:2])
    words = head[:-1] if head[-1].text == ";" else head
    pointer = next((i for i in range(len(words) - 2) if words[i].text == "(" and words[i + 1].text == "*"), None)
    if pointer is not None:
        return (words[pointer + 2].text,)
    record = _record_at(head)
    names = _record_names(words[record:]) if record is not None and any(t.text == "{" for t in words) else ()
    tail = [i for i, t in enumerate(words) if t.kind == "name" and (i + 1 == len(words) or words[i + 1].text in "[,")]
    return tuple(dict.fromkeys((*names, *(words[i].text for i in tail[-1:]))))


def _record_names(head: Sequence[Token]) -> tuple[str, ...]:
    start = _record_at(head)
    if start is None:
        return ()
    names = []
    index = start + 1
    while index + 1 < len(head) and (  # enum class, struct MY_ATTRIBUTE S
        head[index].text in RECORDS
        or (head[index].kind == head[index + 1].kind == "name" and head[index + 1].text != "final")
    ):
        index += 1
    if index < len(head) and head[index].kind == "name":
        names.append(head[index].text)
    brace = _top_level(head, "{")
    if brace is not None:
        close = close_of(head, brace) or len(head) - 1
        if head[start].text == "enum":
            names += [
                t.text for i, t in enumerate(head[brace:close], brace) if t.kind == "name" and head[i - 1].text in "{,"
            ]
        names += list(_declarator_names(head[close + 1 :]))
    return tuple(names)


def _declarator_names(head: Sequence[Token]) -> Iterator[str]:
    """Names before ``=``, ``[``, ``{``, ``(``, ``,`` or ``;`` at depth 0."""
    index, fresh = 0, True
    while index < len(head):
        token = head[index]
        following = head[index + 1].text if index + 1 < len(head) else ";"
        if token.kind == "name" and fresh and following in ("=", "[", "{", "(", ",", ";"):
            yield token.text
            fresh = False
        elif token.text == ",":
            fresh = True
        elif token.text in ("(", "[", "{"):
            index = close_of(head, index) or index
        elif token.text == "<":
            index = close_angle(head, index) or index
        index += 1
