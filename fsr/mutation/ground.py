"""Where faults are planted: the functions of a candidate as tokens and as statements, with places in its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from fsr.records import Candidate
from fsr.source.entry import function_name
from fsr.source.form import Declare, KernelForm, Stmt
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.tokens import Token, close_of, tokenize
from fsr.source.walk import walk_stmts

_SYMBOLS = re.compile(r"<<=|>>=|[-+*/%&|^<>=!]=|&&|\|\||\+\+|--|<<|>>")
_TYPES = frozenset(
    ["void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "size_t", "half",
     "__half", "float2", "float4", "auto", "const"]
)  # fmt: skip
FLOATS = ("float", "double", "half", "__half")


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a text: characters ``start`` to ``end`` become ``text``. ``header``: an include that it needs."""

    operator: str
    start: int
    end: int
    text: str
    header: str = ""


Operator = Callable[["Function"], Iterator[Edit]]
"""The faults of one kind that a function offers."""


@dataclass(frozen=True)
class Function:
    """A function of a candidate. ``tokens``: of its body, between the braces, operators of several characters joined.
    ``starts``, ``ends``: of its body's text. ``is_kernel``: whether the plan launches it."""

    source: str
    form: KernelForm
    tokens: Sequence[Token]
    start: int
    end: int
    is_kernel: bool
    to_characters: Callable[[int], int]

    @cached_property
    def statements(self) -> list[tuple[Stmt, int, int]]:
        """Every statement that has a place, with its first and last character; nested ones too, none twice."""
        found: dict[tuple[int, int], tuple[Stmt, int, int]] = {}
        for s in walk_stmts(self.form.body):
            if (span := getattr(s, "span", None)) is not None:
                start, end = self.to_characters(span[0]), self.to_characters(span[1])
                found.setdefault((start, end), (s, start, end))
        return list(found.values())

    @cached_property
    def types(self) -> dict[str, str]:
        """Base types of parameters and variables by name: of ``const float *x`` and ``float x[8]``, float."""
        named = [(p.name, p.type) for p in self.form.params]
        named += [(s.name, s.type) for s in walk_stmts(self.form.body) if isinstance(s, Declare)]
        return {name: re.sub(r"\b(const|volatile)\b|[*&]|__restrict__", "", type_).strip() for name, type_ in named}

    @cached_property
    def two_axes(self) -> bool:
        """Whether it looks at more than one axis of its place."""
        return ".y" in self.source[self.start : self.end]

    def text(self, start: int, end: int) -> str:
        """A part of the source."""
        return self.source[start:end]

    def close(self, at: int) -> int | None:
        """The index of the token that closes the bracket at an index."""
        return close_of(self.tokens, at)

    def follows_operand(self, at: int) -> bool:
        """Whether the token at an index stands behind an operand, so that an operator there has two."""
        if not at:
            return False
        before = self.tokens[at - 1]
        if before.text in _TYPES or before.text in ("return", "case", "else"):
            return False
        return before.kind in ("name", "number") or before.text in (")", "]")

    def operand_end(self, at: int) -> int:
        """The last token of the operand that begins at an index: a name with its members, indices and arguments."""
        tokens = self.tokens
        end = at
        if tokens[at].text == "(":
            end = self.close(at) or at
        while end + 1 < len(tokens):
            after = tokens[end + 1].text
            if after in (".", "->", "::") and end + 2 < len(tokens):
                end += 2
            elif after in ("[", "(") and (closing := self.close(end + 1)) is not None:
                end = closing
            else:
                break
        return end

    def operand_start(self, at: int) -> int:
        """The first token of the operand that ends at an index."""
        tokens = self.tokens
        start = at
        while start > 0:
            if tokens[start].text in (")", "]"):
                start = self._opening(start)
                if start and (tokens[start - 1].kind == "name" and tokens[start - 1].text not in ("return", "if")):
                    start -= 1
                    continue
                if start and tokens[start - 1].text in (")", "]") and tokens[start].text == "[":
                    start -= 1
                    continue
                return start
            if tokens[start - 1].text in (".", "->", "::") and start > 1:
                start -= 2
                continue
            return start
        return start

    def _opening(self, at: int) -> int:
        depth = 0
        for index in range(at, -1, -1):
            depth += (self.tokens[index].text in (")", "]")) - (self.tokens[index].text in ("(", "["))
            if depth == 0:
                return index
        return at

    def arguments(self, at: int) -> list[tuple[int, int]]:
        """The places in the text of a call's arguments; ``at``: the index of its opening parenthesis."""
        close, depth, found = self.close(at), 0, []
        start = self.tokens[at].end
        for index in range(at, close or at):
            text = self.tokens[index].text
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if depth == 1 and text == ",":
                found.append((start, self.tokens[index].start))
                start = self.tokens[index].end
        return [*found, (start, self.tokens[close].start)] if close is not None else []


def functions(candidate: Candidate) -> list[Function]:
    """The kernels that the plan launches and the device functions of the text, kernels first."""
    source = candidate.source
    launched = {function_name(launch.entry).rpartition("::")[2] for launch in candidate.plan.launches}
    kernels = [f for f in parse_kernels(source).values() if f.name in launched]
    others = [f for f in parse_device_functions(source).values() if "__global__" not in f.prefix]
    to_characters = _characters(source)
    found = [_function(source, f, f.name in launched, to_characters) for f in (*kernels, *others)]
    return [f for f in found if f is not None]


def _characters(source: str) -> Callable[[int], int]:
    if source.isascii():
        return lambda at: at
    data = source.encode()
    return lambda at: len(data[:at].decode(errors="replace"))


def _function(source: str, form: KernelForm, is_kernel: bool, to_characters: Callable[[int], int]) -> Function | None:
    if form.span is None:
        return None
    start, end = to_characters(form.span[0]), to_characters(form.span[1])
    tokens = [t for t in tokenize(source[start:end]) if t.kind != "directive"]
    parens = next((i for i, t in enumerate(tokens[:-1]) if t.text == form.name and tokens[i + 1].text == "("), None)
    close = close_of(tokens, parens + 1) if parens is not None else None
    brace = next((i for i in range(close or 0, len(tokens)) if tokens[i].text == "{"), None)
    last = close_of(tokens, brace) if brace is not None and close is not None else None
    if brace is None or last is None:
        return None
    body = _joined(source, [Token(t.kind, t.text, t.start + start) for t in tokens[brace + 1 : last]])
    return Function(source, form, body, tokens[brace].end + start, tokens[last].start + start, is_kernel, to_characters)


def _joined(source: str, tokens: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    for token in tokens:
        if found and token.start < found[-1].end:
            continue
        match = _SYMBOLS.match(source, token.start) if token.kind == "punct" else None
        found.append(Token("punct", match.group(), token.start) if match else token)
    return found
