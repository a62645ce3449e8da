"""The names that a text declares, read from its tokens: functions that it defines, and all else that it introduces.

A name that is called counts only when it is a function, a lambda or an object of the text: the shape of a declaration
alone (``y * name(1)``) makes nothing one's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import pairwise

from fsr.guard.declarators import introduced
from fsr.source.tokens import Token, close_angle, close_of

_NO_TYPE = frozenset(
    """return else case goto throw sizeof new delete co_return co_yield not and or xor bitand bitor compl do if while
    for switch break continue default alignof static_cast const_cast reinterpret_cast operator""".split()  # noqa: SIM905
)
_INTRODUCES = frozenset(("struct", "class", "union", "enum", "typename", "namespace", "using", "concept"))
_TYPE_LIKE = frozenset(("const", "volatile", "unsigned", "signed", "__restrict__", "constexpr", "static"))
_TYPES = frozenset(
    "int float double char bool void unsigned signed short long const volatile struct size_t auto".split()  # noqa: SIM905
)
_POINTERS = frozenset(("*", "&", "const", "__restrict__", "__restrict", "restrict", "volatile"))
_ALIGNED = frozenset(("__align__", "alignas", "__builtin_align__", "__attribute__", "__launch_bounds__"))


class Declared:
    """The names that a text introduces (types, members, parameters, variables, functions, enumerators, labels), and
    where each counts: a member inside its record, records that inherit it and its functions that stand outside.

    ``code``: the text's tokens. ``documented``: names that CUDA knows, types among them."""

    def __init__(self, text: str, code: Sequence[Token], documented: Collection[str]) -> None:
        self._text, self._code, self._documented = text, code, documented
        self._records = [_Record(code, begin, end) for begin, end in _records(code)]
        self._types = {t.text for at, t in enumerate(code) if t.kind == "name" and at and _introduced(code, at)}
        self._types |= set(_typedefs(code))
        self._read = self._by_name((*_declared(code, self._types), *_listed(code)))

    def knows(self, name: str, at: int) -> bool:
        """Whether the name at index ``at`` is one of them."""
        return _holds(self._read.get(name, ()), at) or _holds(self._parsed.get(name, ()), at)

    @cached_property
    def _parsed(self) -> dict[str, list[tuple[int, int]]]:
        """What only the grammar sees: asked for where a name is not found otherwise."""
        index = {token.start: at for at, token in enumerate(self._code)}
        found = introduced(self._text, _TYPES | self._types | set(self._documented))
        return self._by_name((name, index[at]) for name, at in found if at in index)

    def _by_name(self, found: Iterable[tuple[str, int]]) -> dict[str, list[tuple[int, int]]]:
        places: dict[str, list[tuple[int, int]]] = {}
        for name, at in found:
            inside = max((r for r in self._records if r.begin < at < r.end), key=lambda r: r.begin, default=None)
            there = [(0, len(self._code))] if inside is None else inside.places(self._records)
            places.setdefault(name, []).extend(there)
        return places


def _holds(places: Iterable[tuple[int, int]], at: int) -> bool:
    return any(begin <= at <= end for begin, end in places)


class _Record:
    """A struct, class or union, whose braces stand at ``begin`` and ``end``."""

    def __init__(self, code: Sequence[Token], begin: int, end: int) -> None:
        first = next(i for i in range(begin, -1, -1) if code[i].text in ("struct", "class", "union"))
        head = [t.text for t in code[first + 1 : begin]]
        named = pairwise([*head, "{"])
        self.name = next((a for a, b in named if b in ("{", ":", "<", "final") and a.isidentifier()), "")
        self.bases = head[head.index(":") :] if ":" in head else []
        self.begin, self.end, self._code = begin, end, code
        self._places: list[tuple[int, int]] | None = None

    def places(self, records: Sequence[_Record]) -> list[tuple[int, int]]:
        """Where its members count: in it, in records that inherit it, in its functions that stand outside."""
        if self._places is None:
            heirs = [r for r in records if self.name and self.name in r.bases]
            self._places = [(r.begin, r.end) for r in (self, *heirs)] + list(self._outside())
        return self._places

    def _outside(self) -> Iterator[tuple[int, int]]:
        code = self._code
        for at in range(len(code) - 2) if self.name else ():
            if code[at].text == self.name and code[at + 1].text in ("::", "<"):
                body = next((i for i in range(at, len(code)) if code[i].text in ("{", ";")), len(code))
                close = close_of(code, body) if body < len(code) and code[body].text == "{" else None
                if close is not None and _heads_a_function(code, at, body):
                    yield at, close


def _heads_a_function(code: Sequence[Token], at: int, body: int) -> bool:
    """Whether ``Record::name(`` stands between, at the depth of the file: the head of a member's definition."""
    texts = [t.text for t in code[at:body]]
    return "::" in texts and "(" in texts[texts.index("::") :] and texts.count("(") == texts.count(")")


def _records(code: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where the bodies of structs, classes and unions begin and end; those of anonymous ones are their neighbours'."""
    for index, token in enumerate(code):
        if token.text in ("struct", "class", "union") and index + 1 < len(code) and code[index + 1].text != "{":
            begin = next((i for i in range(index, len(code)) if code[i].text in ("{", ";", "(", ")", ">", ",")), index)
            if code[begin].text == "(" and code[begin - 1].text in _ALIGNED:
                after = close_of(code, begin) or begin
                begin = next((i for i in range(after, len(code)) if code[i].text in ("{", ";")), after)
            close = close_of(code, begin) if code[begin].text == "{" else None
            if close is not None:
                yield begin, close


def _declared(code: Sequence[Token], types: AbstractSet[str]) -> Iterator[tuple[str, int]]:
    objects = set[str]()  # what stands before a star and is one of these is multiplied
    for index, token in enumerate(code):
        if token.kind != "name" or index == 0:
            continue
        before, behind = _before(code, index), code[index + 1].text if index + 1 < len(code) else ""
        made = before == "goto" or (before == "}" and behind in (";", "=", "[", ","))
        if made or _introduced(code, index):
            yield token.text, index
        elif behind == "(":
            made = _is_type(code, index - 1, pointers=False) and _makes(code, index + 1)
            if made or _defines(code, index):
                yield token.text, index
        elif (
            behind in ("=", ";", ",", ")", "[", "{", ":", ">")
            and _is_type(code, index - 1, pointers=True)
            and (code[index - 1].text not in ("*", "&") or _starred(code, index - 1) not in objects - types)
        ):
            objects.add(token.text)
            yield token.text, index


def _typedefs(code: Sequence[Token]) -> Iterator[str]:
    """What ``typedef float T;`` and ``typedef float V[4];`` make types."""
    for at, token in enumerate(code):
        if token.text == "typedef":
            end = next((i for i in range(at, len(code)) if code[i].text in ("[", ";")), len(code))
            if code[end - 1].kind == "name":
                yield code[end - 1].text


def _introduced(code: Sequence[Token], at: int) -> bool:
    """Whether a word stands before a name that makes it a type's, a template's or a namespace's."""
    pack = at > 3 and all(token.text == "." for token in code[at - 3 : at])  # typename... A
    return (code[at - 4].text if pack else _before(code, at)) in _INTRODUCES


def _before(code: Sequence[Token], at: int) -> str:
    """The word before a name, attributes with their parentheses left aside: ``struct`` of ``struct alignas(8) S``."""
    at -= 1
    while at > 1 and code[at].text == ")":
        depth = 0
        for index in range(at, 0, -1):
            depth += (code[index].text == ")") - (code[index].text == "(")
            if depth == 0:
                break
        if code[index - 1].text not in _ALIGNED:
            break
        at = index - 2
    return code[at].text


def _is_type(code: Sequence[Token], at: int, *, pointers: bool) -> bool:
    """Whether what ends here may be a type: a name that is no operator, with stars behind it."""
    while pointers and at > 0 and code[at].text in _POINTERS:
        at -= 1
    token = code[at]
    if token.text == ">":
        return pointers or _begins_a_statement(code, at)
    return token.kind == "name" and token.text not in _NO_TYPE


def _starred(code: Sequence[Token], at: int) -> str:
    """The word that stars or ampersands stand behind."""
    return next((code[i].text for i in range(at, -1, -1) if code[i].text not in _POINTERS), "")


def _begins_a_statement(code: Sequence[Token], at: int) -> bool:
    """Whether ``ns::name<...>``, whose last token is at ``at``, stands where a statement begins: it is a type there,
    no comparison."""
    depth, begin = 0, at
    while begin > 0:
        text = code[begin].text
        depth += (text == ">") - (text == "<")
        if depth == 0:
            break
        if text in (";", "{", "}", "&&", "||", "="):
            return False
        begin -= 1
    begin -= 1
    while begin > 2 and code[begin].kind == "name" and code[begin - 1].text in ("::", ":"):
        begin -= 1
        while code[begin].text in ("::", ":"):
            begin -= 1
    return code[begin].kind == "name" and code[begin - 1].text in (";", "{", "}", ")", "const", "static")


def _defines(code: Sequence[Token], at: int) -> bool:
    """Whether the name at ``at`` heads a function's definition: parentheses, then a body."""
    close = close_of(code, at + 1)
    index = close + 1 if close is not None else len(code)
    while index < len(code) and code[index].text in ("const", "noexcept", "volatile", "&"):
        index += 1
    if index < len(code) and code[index].text == "->":
        index = next((i for i in range(index, len(code)) if code[i].text in ("{", ";")), len(code))
    return index < len(code) and code[index].text == "{" and code[at - 1].text not in ("=", "(", ",", ";", "{", "}")


def _makes(code: Sequence[Token], at: int) -> bool:
    """Whether the parentheses at ``at`` hold values of an object that is made: ``Type name(values);``. (Without any, or
    with types, they declare a function.)"""
    close = close_of(code, at)
    if close is None or close == at + 1 or code[at + 1].text in _TYPES or close + 1 >= len(code):
        return False
    return code[close + 1].text in (";", ",")


def _listed(code: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Further declarators (``int a, b;``), enumerators, structured bindings, captures with a value, macros' rests."""
    for index, token in enumerate(code):
        if token.text == "enum":
            begin = next((i for i in range(index, min(index + 8, len(code))) if code[i].text == "{"), None)
            close = close_of(code, begin) if begin is not None else None
            if begin is not None and close is not None:
                yield from (
                    (code[i].text, i) for i in range(begin + 1, close)
                    if code[i].kind == "name" and code[i - 1].text in ("{", ",")
                )  # fmt: skip
        elif token.text == "[" and index and code[index - 1].text in ("auto", "&", "&&"):
            close = close_of(code, index)
            yield from ((code[i].text, i) for i in range(index + 1, close or index) if code[i].kind == "name")
        elif token.text == "[" and index + 2 < len(code) and code[index + 2].text == "=":
            yield code[index + 1].text, index + 1
        elif token.text == "template" and index + 1 < len(code) and code[index + 1].text == "<":
            close = close_angle(code, index + 1)
            for i in range(index + 2, close or index + 2):
                if code[i].kind == "name" and code[i + 1].text in (",", ">", "="):
                    yield code[i].text, i
        elif token.text == "," and index + 2 < len(code):
            star = index + 1
            while star < len(code) - 1 and code[star].text in _POINTERS:
                star += 1
            ends = star + 1 < len(code) and code[star + 1].text in ("=", ";", "[", ",", "{")
            if code[star].kind == "name" and ends and _in_declaration(code, index):
                yield code[star].text, star


def _in_declaration(code: Sequence[Token], comma: int) -> bool:
    """Whether the statement that a comma stands in begins with a type and a name."""
    depth, at = 0, comma - 1
    while at >= 0:
        text = code[at].text
        depth += (text in (")", "]", "}")) - (text in ("(", "[", "{"))
        ended = text == ";" or (text == "}" and code[at + 1].kind == "name")  # a body, and what stands behind it
        if depth < 0 or (depth == (text == "}") and ended):
            break
        at -= 1
    words = [t for t in code[at + 1 : at + 8] if t.text not in _TYPE_LIKE]
    return len(words) > 1 and words[0].kind == "name" and words[0].text not in _NO_TYPE
