"""The names that a text declares, read from its tokens: functions that it defines, and all else that it introduces.

A name that is called counts only when it is a function, a lambda or an object of the text: the shape of a declaration
alone (``y * name(1)``) makes nothing one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    """The names that tokens introduce (types, members, parameters, variables, functions, enumerators, labels), and
    where each counts: a member inside its record only."""

    def __init__(self, code: Sequence[Token]) -> None:
        self._records = list(_records(code))
        self._places: dict[str, list[tuple[int, int]]] = {}
        for name, at in (*_declared(code), *_listed(code)):
            inside = [record for record in self._records if record[0] < at < record[1]]
            self._places.setdefault(name, []).append(max(inside, default=(0, len(code))))

    def knows(self, name: str, at: int) -> bool:
        """Whether the name at index ``at`` is one of them."""
        return any(begin <= at <= end for begin, end in self._places.get(name, ()))


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


def _declared(code: Sequence[Token]) -> Iterator[tuple[str, int]]:
    for index, token in enumerate(code):
        if token.kind != "name" or index == 0:
            continue
        before, behind = _before(code, index), code[index + 1].text if index + 1 < len(code) else ""
        introduced = before in _INTRODUCES or before == "goto" or (before == "}" and behind in (";", "=", "[", ","))
        if introduced or (before == "..." and index > 1 and code[index - 2].text in _INTRODUCES):
            yield token.text, index
        elif behind == "(":
            made = _is_type(code, index - 1, pointers=False) and _makes(code, index + 1)
            if made or _defines(code, index):
                yield token.text, index
        elif behind in ("=", ";", ",", ")", "[", "{", ":", ">") and _is_type(code, index - 1, pointers=True):
            yield token.text, index


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
        if depth < 0 or (depth == 0 and text == ";"):
            break
        at -= 1
    words = [t for t in code[at + 1 : at + 8] if t.text not in _TYPE_LIKE]
    return len(words) > 1 and words[0].kind == "name" and words[0].text not in _NO_TYPE
