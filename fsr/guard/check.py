"""The static guard: refuses candidates that reach for anything but computing, before a compiler sees them.

A candidate is device code. What it may name, include, declare at file scope or say to the compiler is limited to
what kernels need; whatever the baseline itself does, a candidate may do too, since the user wrote that. The text is
judged token by token after preprocessing, as it is compiled, so that comments, macros and splices hide nothing: a name
is allowed when the candidate declares it, the original holds it, or CUDA documents it. The guard is the first of
several lines: what it lets through still meets limits, guard zones and tests.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from copy import copy
from functools import lru_cache

from fsr.backends.flags import refused_flags
from fsr.guard import addresses, bombs, scope
from fsr.guard.declared import Declared
from fsr.guard.names import (
    ASM_ROOTS,
    ASM_SPECIAL,
    ATTRIBUTES,
    BUILTINS,
    DEFINES,
    FLAGS,
    HEADERS,
    INDEX_VARIABLES,
    NAME_PATTERNS,
    NAMES,
    PRAGMAS,
    PROTECTED,
    STANDARD,
    cuda_names,
    host_device_names,
)
from fsr.guard.settled import settled_pair
from fsr.records import Candidate, Fault, FaultKind
from fsr.source.conditionals import directive_name
from fsr.source.entry import function_name
from fsr.source.preprocess import CannotPreprocess
from fsr.source.tokens import Token, assembly_of, tokenize

SOURCE_LIMIT = 256 * 1024  # bytes; four times the largest hand-written kernel file we know of
LINE_LIMIT = 4000  # characters
STANDARD_ATTRIBUTES = {"maybe_unused", "nodiscard", "likely", "unlikely", "fallthrough", "noreturn"}
SPLICE = re.compile(r"\\[ \t]*\r?\n")


def guard(candidate: Candidate, baseline: Candidate, target: str = "sm_90") -> Fault | None:
    """The first reason to refuse the candidate (kind 'refused', with its line where there is one), or None.

    ``baseline`` is the user's own kernel: constructs that it holds are allowed. ``target``: the architecture that
    conditions on __CUDA_ARCH__ are decided for. Pure; a few milliseconds.
    """
    if len(candidate.source.encode()) > SOURCE_LIMIT:
        return _refused(f"the source has over {SOURCE_LIMIT} bytes")
    for flag in candidate.plan.flags:
        define = flag.startswith(("-D", "-U"))
        allowed = DEFINES.fullmatch(flag) if define else not refused_flags([flag]) or FLAGS.fullmatch(flag)
        if flag not in baseline.plan.flags and not allowed:
            return _refused(f"the compiler flag {flag!r} is not one that candidates may set")
    written, theirs = Text(candidate.source), _original(baseline.source)
    for check in (_characters, _directives):
        fault = next(check(candidate, written, theirs), None)
        if fault is not None:
            return fault
    try:
        settled, original = settled_pair(candidate, baseline, target)
    except CannotPreprocess as why:
        return _refused(why.why, why.line)
    text, own = Text(settled.source), copy(_original(original.source))
    own.names = own.names | theirs.names
    for check in (_directives, _names, _asm, _kernels):
        fault = next(check(candidate, text, own), None)
        if fault is not None:
            return fault
    found = scope.first_state(text.joined, own.joined) or bombs.first_bomb(text.tokens) or _place(text, own)
    if found is not None:
        return _refused(found[0], text.line(found[1]))
    taken = addresses.disguised_buffer(candidate.plan, text.joined, baseline.plan, own.joined)
    return (
        None
        if taken is None
        else _refused(f"the parameter {taken!r} is no pointer and is passed a buffer: take it as one")
    )


def _place(text: Text, own: Text) -> tuple[str, Token] | None:
    found = addresses.first_misuse(text.joined, own.joined)
    if found is None:
        return None
    why = (
        f"{found[1][:90]!r} tells where a buffer lies, which no two runs have alike; of an address a kernel may"
        " ask how it is aligned, as in ((size_t)p & 15) == 0, and whether it is another's: decide by sizes or values"
    )
    return why, Token("name", "", found[0])


class Text:
    """A source with continued lines joined, as tokens; directives also as the tokens of their line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.joined = SPLICE.sub("", source)
        self._splices = [m.start() for m in SPLICE.finditer(source)]
        self.tokens = tokenize(self.joined)
        self.names = {t.text for t in self.words() if t.kind == "name"}

    def words(self) -> Iterator[Token]:
        """All tokens, those inside preprocessor lines included."""
        for token in self.tokens:
            if token.kind == "directive":
                inner = tokenize(token.text[1:])
                yield from (Token(t.kind, t.text, token.start + 1 + t.start) for t in inner)
            else:
                yield token

    def code(self) -> Iterator[Token]:
        """All tokens, with those of macros that were left to the compiler, without other preprocessor lines."""
        for token in self.tokens:
            if token.kind != "directive":
                yield token
            elif directive_name(token.text) == "define":
                inner = tokenize(token.text[1:])[1:]
                yield from (Token(t.kind, t.text, token.start + 1 + t.start) for t in inner)

    def uses_bare_indices(self) -> bool:
        """Whether threadIdx or its like stands somewhere as a whole."""
        return any(a.text in INDEX_VARIABLES and b.text != "." for a, b in itertools.pairwise(self.tokens))

    def line(self, token: Token | None) -> int | None:
        """The 1-based line of a token, counted in the source as it was written (exact up to splices before it)."""
        if token is None:
            return None
        joined_lines = self.joined.count("\n", 0, token.start) + 1
        return joined_lines + sum(1 for i, s in enumerate(self._splices) if s - 2 * i < token.start)


@lru_cache(maxsize=8)
def _original(source: str) -> Text:
    return Text(source)


def _refused(why: str, line: int | None = None) -> Fault:
    return Fault(FaultKind.REFUSED, why, line)


def _characters(candidate: Candidate, text: Text, own: Text) -> Iterator[Fault]:
    for token in text.words():
        strange = not token.text.isascii() or (token.kind == "punct" and token.text in "\\@`")
        if strange:
            yield _refused(f"the character {token.text[:8]!r} outside comments", text.line(token))
        if token.kind == "string" and "R" in token.text.split('"', 1)[0] and token.text not in own.joined:
            yield _refused("a raw string", text.line(token))
    code = "".join(t.text for t in text.tokens if t.kind != "string")
    digraph = re.search(r"\?\?[=/]|%:|<%|%>|<:(?!:)", code)
    if digraph and digraph[0] not in own.joined:
        yield _refused(f"the digraph or trigraph {digraph[0]}")
    if any(len(line) > LINE_LIMIT for line in text.source.split("\n")):
        yield _refused(f"a line longer than {LINE_LIMIT} characters")


def _directives(candidate: Candidate, text: Text, own: Text) -> Iterator[Fault]:
    theirs = {_normal(t.text) for t in own.tokens if t.kind == "directive"}
    for token in text.tokens:
        if token.kind != "directive" or _normal(token.text) in theirs:
            continue
        why = _bad_directive(token.text)
        if why:
            yield _refused(why, text.line(token))


def _bad_directive(line: str) -> str | None:
    name, rest = directive_name(line), re.sub(r"^#\s*\w*\s*", "", line)
    rest = re.sub(r"/\*.*?\*/|//.*", "", rest, flags=re.DOTALL).strip()
    match name:
        case "include":
            header = re.fullmatch(r"<([\w./]+)>", rest)
            allowed = header is not None and ".." not in rest and HEADERS.fullmatch(header[1])
            return None if allowed else f"#include {rest} is not a header of the device toolkit"
        case "pragma":
            return None if PRAGMAS.match(rest) else f"#pragma {rest[:40]}"
        case "define":
            return _bad_macro(rest)
        case "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" | "undef" | "error" | "warning" | "":
            return f"the line {line.strip()!r}" if name == "" and rest else None
    return f"the directive #{name or rest[:20]}"


def _bad_macro(body: str) -> str | None:
    tokens = tokenize(body)
    if tokens and (tokens[0].text in scope.KEYWORDS or PROTECTED.fullmatch(tokens[0].text)):
        return f"a macro that redefines {tokens[0].text!r}"
    for opening, closing in ("()", "[]", "{}"):
        if [t.text for t in tokens].count(opening) != [t.text for t in tokens].count(closing):
            return "a macro with unbalanced brackets"
    return None


def _names(candidate: Candidate, text: Text, own: Text) -> Iterator[Fault]:
    words = [*text.code(), Token("punct", "", 0)]
    declared = Declared(text.joined, words[:-1], cuda_names())
    bare = own.uses_bare_indices()
    for index, token in enumerate(words[:-1]):
        if token.text == "<<<" and "<<<" not in own.joined:
            yield _refused("a launch from device code", text.line(token))
        if token.kind == "name" and token.text in INDEX_VARIABLES and not bare and words[index + 1].text != ".":
            yield _refused(f"{token.text!r} as a whole, which is not the same thing everywhere", text.line(token))
        if token.kind != "name" or token.text in own.names:
            continue
        why = _bad_name(words, index, declared)
        if why:
            yield _refused(why, text.line(token))
        if token.text in ("__attribute__", "__attribute"):
            strange = _names_until(words, index + 1, ")") - ATTRIBUTES
            if strange:
                yield _refused(f"the attribute {', '.join(sorted(strange))}", text.line(token))
    for index in range(len(words) - 1):
        if words[index].text == words[index + 1].text == "[" and "[[" not in own.joined:
            inside = _names_until(words, index, "]")
            if not inside or inside - STANDARD_ATTRIBUTES:
                yield _refused("an attribute in [[ ]]", text.line(words[index]))


def _bad_name(words: list[Token], index: int, declared: Declared) -> str | None:
    """Why a name is refused; None for one that may stand there."""
    name, before = words[index].text, words[index - 1].text if index else ""
    if name in NAMES or any(p.match(name) for p in NAME_PATTERNS) or name in host_device_names():
        return f"{name!r}, which a kernel has no use for"
    if name.startswith("__builtin_"):
        return None if name in BUILTINS else f"the compiler builtin {name!r}"
    if before in (".", "->") or name in cuda_names() or declared.knows(name, index):
        return None
    qualified = before == "::" and index > 1 and (words[index - 2].kind == "name" or words[index - 2].text == ">")
    if qualified:
        return f"{name!r} of the standard library" if name in STANDARD else None
    return f"{name!r}, which neither the candidate declares nor CUDA documents"


def _names_until(words: list[Token], index: int, closing: str) -> set[str]:
    """The names from an index up to the first closing bracket."""
    stop = next((i for i in range(index, len(words)) if words[i].text == closing), len(words))
    return {t.text for t in words[index:stop] if t.kind == "name"}


def _asm(candidate: Candidate, text: Text, own: Text) -> Iterator[Fault]:
    """Inline assembly may hold known PTX arithmetic, copy and matrix instructions, and nothing that reads clocks,
    places or control state; what the baseline holds verbatim is its own."""
    tokens = list(text.code())
    for index, at, close in assembly_of(tokens):
        token = tokens[index]
        if close is None:
            yield _refused("inline assembly outside a function", text.line(token))
            continue
        if _is_label(tokens, index):
            yield _refused("an assembler name for a function or variable", text.line(token))
        strings = [t.text for t in tokens[at:close] if t.kind == "string"]
        if strings and all(s in own.joined for s in strings):
            continue
        template = list(itertools.takewhile(lambda t: t.text not in (":", "::"), tokens[at + 1 : close]))
        if any(t.kind != "string" for t in template):
            yield _refused("inline assembly whose text is not a literal", text.line(token))
        for why in _bad_ptx(_template(template)):
            yield _refused(why, text.line(token))


def _is_label(tokens: list[Token], at: int) -> bool:
    """Whether the assembly stands behind a declarator: ``int f(int) asm("name");``."""
    before = tokens[at - 1].text if at else ";"
    if before != ")":
        return before not in (";", "{", "}", ":", "else", "do")
    depth = 0
    for index in range(at - 1, 0, -1):
        depth += (tokens[index].text == ")") - (tokens[index].text == "(")
        if depth == 0:
            return tokens[index - 1].text not in ("if", "for", "while", "switch")
    return True


def _template(tokens: list[Token]) -> str:
    """The instruction text of an asm statement: its string literals joined."""
    return "".join(re.sub(r"\\[nt]", "\n", t.text[t.text.index('"') + 1 : -1]) for t in tokens)


def _bad_ptx(template: str) -> Iterator[str]:
    if not template.strip():
        return
    if ASM_SPECIAL.search(template):
        yield f"inline assembly that reads {ASM_SPECIAL.search(template)[0]}"  # type: ignore[index]
    operands = re.sub(r"\{[^{};]*\}", " ", re.sub(r"//[^\n]*", " ", template))  # {%0, %1}: no instruction ends inside
    for instruction in re.split(r"[;{}]", operands):
        words = instruction.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if not words:
            continue
        if words[0] not in (".reg",) and not ASM_ROOTS.match(words[0]):
            yield f"inline assembly with {words[0]!r}"


def _kernels(candidate: Candidate, text: Text, own: Text) -> Iterator[Fault]:
    """Every launched entry is a kernel of this source, and every kernel of it is launched or the baseline's own."""
    launched = {function_name(launch.entry) for launch in candidate.plan.launches}
    defined = scope.kernel_names(text.joined)
    theirs = set(scope.kernel_names(own.joined))
    for name, token in defined.items():
        if name not in launched and name not in theirs:
            yield _refused(f"the kernel {name!r} is never launched: a decoy", text.line(token))
    for name in sorted(launched - set(defined)):
        if name in text.names and not defined:
            continue  # declared through a macro of the baseline: the compiler decides
        yield _refused(f"the plan launches {name!r}, which the source does not define")


def _normal(line: str) -> str:
    return " ".join(line.split())
