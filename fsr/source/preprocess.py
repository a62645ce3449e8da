"""A candidate after preprocessing: the text that is judged, and compiled for the host device and for the GPU alike.

Preprocessing once, here, leaves nothing that a compiler could read in its own way: no macro of a header or a command
line tells the candidate where it runs, and no name is made of others after it was judged. What is left of the
preprocessor are includes, pragmas, and conditionals of the original that ask for what only its compiler knows.
The expansion follows D. Prosser's algorithm for C (X3J11/86-196); it is cut at a budget of tokens, so that a macro that
doubles itself costs milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from fsr.records import Candidate
from fsr.source.condition import NotConstant, of_headers, value_of
from fsr.source.conditionals import directive_name
from fsr.source.tokens import Token, tokenize

EXPANSION_LIMIT = 50_000  # tokens that all macros of a text may become
_MOST_OPEN = 4  # names of which every combination is tried
_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_CONDITIONALS = {"if", "ifdef", "ifndef", "elif", "else", "endif"}
_KEPT = {"include", "pragma", "error"}
_UNROLL = re.compile(r"^(#\s*pragma\s+(?:no)?unroll\b)(.*)", re.DOTALL)


class CannotPreprocess(Exception):  # noqa: N818  # a reason to refuse, not an error of the program
    """Why a text cannot be preprocessed, and the 1-based line."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.why, self.line = why, line


@dataclass(frozen=True, slots=True)
class _Word:
    """A token on its way: the macros that it came out of may not replace it again. ``spaced``: blanks before it;
    ``origin``: the text (0) or the expansion that it stood in, since only neighbours may touch."""

    text: str
    kind: str
    hidden: frozenset[str] = frozenset()
    spaced: bool = False
    origin: int = 0


@dataclass(frozen=True, slots=True)
class _Macro:
    """``parameters`` None: no parentheses follow its name."""

    parameters: tuple[str, ...] | None
    body: tuple[_Word, ...]
    variadic: bool = False


@dataclass(slots=True)
class _State:
    """``opaque``: macros whose definition is left to the compiler. ``frames``: for each open conditional, (is this
    branch taken, was one taken before, is it left to the compiler)."""

    macros: dict[str, _Macro]
    shared: frozenset[str]  # directives of the original, which may ask what they like
    opaque: set[str] = field(default_factory=set)
    frames: list[tuple[bool, bool, bool]] = field(default_factory=list)
    spent: int = 0

    @property
    def active(self) -> bool:
        return all(taken for taken, _, _ in self.frames)

    def open(self, name: str) -> bool:
        """Whether only a compiler knows what a macro is."""
        return name in self.opaque or (name not in self.macros and of_headers(name))

    @property
    def left(self) -> bool:
        return any(left for _, _, left in self.frames)


def preprocessed(candidate: Candidate, original: Candidate, target: str) -> Candidate:
    """The candidate with its macros replaced and its conditionals decided, lines numbered as they were, and without
    the -D and -U of its flags that the original does not have. A condition on __CUDA_ARCH__ is decided for ``target``
    ('sm_90'), unless it is one of the original's, which its compilers know how to read. Raises CannotPreprocess."""
    shared = frozenset(_normal(t.text) for t in tokenize(_SPLICE.sub("", original.source)) if t.kind == "directive")
    state = _State({}, shared)
    if found := re.match(r"sm_(\d+)", target):
        _define(state, f"__CUDA_ARCH__ {found[1]}0")
    kept = []
    for flag in candidate.plan.flags:
        if flag.startswith("-D"):
            name, _, text = flag[2:].strip().partition("=")
            _define(state, f"{name} {text if '=' in flag else 1}")
        elif flag.startswith("-U"):
            state.macros.pop(flag[2:].strip(), None)
        if not flag.startswith(("-D", "-U")) or (flag in original.plan.flags and flag[2:].strip()[:1] == "_"):
            kept.append(flag)
    text = "".join(_pieces(state, _joined(candidate.source)))
    if state.frames:
        raise CannotPreprocess("a conditional that no #endif ends")
    return replace(candidate, source=text, plan=replace(candidate.plan, flags=tuple(kept)))


def _joined(source: str) -> str:
    """Continued lines joined, the line breaks that they lose behind them."""
    parts = []
    owed = 0
    for line in _SPLICE.sub("\0", source).split("\n"):
        owed = line.count("\0")
        parts.append(line.replace("\0", "") + "\n" * owed)
    return "\n".join(parts)


def _pieces(state: _State, text: str) -> Iterator[str]:
    tokens = tokenize(text)
    at = index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "directive":
            yield _blank(text[at : token.start], state.active)
            yield _directive(state, token, text.count("\n", 0, token.start) + 1)
            at, index = token.end, index + 1
            continue
        stop = next((i for i in range(index, len(tokens)) if tokens[i].kind == "directive"), len(tokens))
        if state.active:
            yield from _expanded(state, text, tokens[index:stop], at)
        else:
            yield "\n" * text.count("\n", at, tokens[stop - 1].end)
        at, index = tokens[stop - 1].end, stop
    yield _blank(text[at:], active=False)


def _blank(text: str, active: bool) -> str:
    return text if active and not text.strip() else "\n" * text.count("\n")


# ---------------------------------------------------------------- directives


def _directive(state: _State, token: Token, line: int) -> str:
    """What is left of a preprocessor line."""
    name = directive_name(token.text)
    rest = re.sub(r"/\*.*?\*/|//.*", " ", re.sub(r"^#\s*\w*", "", token.text), flags=re.DOTALL).strip()
    kept = token.text if state.left else ""
    if name in _CONDITIONALS:
        return _conditional(state, name, rest, token, line)
    if not state.active:
        return ""
    if name == "define":
        if state.left or not re.match(r"[A-Za-z_]", rest):
            state.opaque.add(re.match(r"\w*", rest)[0])  # type: ignore[index]  # matches anything
            return kept
        _define(state, rest, line)
        return token.text if rest.startswith("_") and _normal(token.text) in state.shared else ""
    if name == "undef":
        state.macros.pop(rest, None)
        return kept
    if name == "pragma" and (unroll := _UNROLL.match(token.text)):
        return f"{unroll[1]} " + _told(_replaced(state, _words(tokenize(f" {unroll[2]}"))))
    return token.text if name in _KEPT or name else ""


def _conditional(state: _State, name: str, rest: str, token: Token, line: int) -> str:
    if name in ("if", "ifdef", "ifndef"):
        if not state.active:
            state.frames.append((False, True, False))
            return ""
        test = f"defined({rest.split()[0] if rest else ''})" if name != "if" else rest
        decided = _decided(state, test, token, line)
        if isinstance(decided, str):
            state.frames.append((True, True, True))
            return f"#if {decided}" if name == "if" else token.text
        taken = decided != (name == "ifndef")
        state.frames.append((taken, taken, False))
        return ""
    if not state.frames:
        raise CannotPreprocess(f"#{name} without #if", line)
    _, before, left = state.frames.pop()
    if name == "endif":
        return token.text if left else ""
    if left:
        told = token.text if name == "else" else f"#elif {_asked(_decided(state, rest, token, line))}"
        state.frames.append((True, True, True))
        return told
    decided = not before and state.active and (name == "else" or _decided(state, rest, token, line))
    if isinstance(decided, str):
        state.frames.append((True, True, True))
        return f"#if {decided}"
    state.frames.append((decided, before or decided, False))
    return ""


def _asked(decided: bool | str) -> str:
    """What the compiler is asked in a conditional that is left to it."""
    return decided if isinstance(decided, str) else str(int(decided))


def _decided(state: _State, test: str, token: Token, line: int) -> bool | str:
    """Whether a condition holds, whatever only a compiler knows; or what is left of one of the original's that only
    its compiler can decide, with the macros replaced that it will not know."""
    shared = _normal(token.text) in state.shared
    expanded, open_ = _condition(state, test, shared)
    asked = [w.text for w in expanded if w.kind == "name" and w.text not in ("true", "false")]
    unknown = [name for name in asked if state.open(name)]
    unknown += ["__CUDA_ARCH__"] if shared and "__CUDA_ARCH__" in asked else []
    why: NotConstant | None = None
    if not unknown and len(open_) <= _MOST_OPEN:
        try:
            found = {
                _valued(expanded, dict(zip(open_, bits, strict=True))) for bits in product("01", repeat=len(open_))
            }
            if len(found) == 1:
                return found.pop()
        except NotConstant as reason:
            why = reason
    if shared:
        return _told(expanded).strip()
    if why is not None:
        raise CannotPreprocess(f"a condition that cannot be decided: {why}", line) from None
    raise CannotPreprocess(f"a condition on {[*unknown, *open_][0]!r}, which differs between compilers", line)


def _condition(state: _State, test: str, shared: bool) -> tuple[list[_Word], list[str]]:
    """The words of a condition with macros replaced, and the names that it asks a compiler for, whose ``defined(X)``
    is one word of kind 'open'. ``shared``: __CUDA_ARCH__ stays as it is."""
    words = _words(tokenize(f"0 {test}"))[1:]
    plain: list[_Word] = []
    open_: dict[str, None] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if word.text != "defined":
            own = shared and word.text == "__CUDA_ARCH__"
            plain.append(replace(word, hidden=frozenset({word.text})) if own else word)
            index += 1
            continue
        index += 2 if index + 1 < len(words) and words[index + 1].text == "(" else 1
        name = words[index].text if index < len(words) else ""
        bracket = words[index - 1].text == "("
        index += 2 if bracket else 1
        own = shared and name == "__CUDA_ARCH__"
        if own or state.open(name):
            open_[name] = None
            plain.append(_Word(f"defined({name})", "open", spaced=word.spaced))
        else:
            plain.append(_Word("1" if name in state.macros else "0", "number", spaced=word.spaced))
    return _replaced(state, plain), list(open_)


def _valued(words: Sequence[_Word], known: Mapping[str, str]) -> bool:
    """Whether a condition holds where these names are defined (1) or not (0). Raises NotConstant."""
    return value_of([known[w.text[len("defined(") : -1]] if w.kind == "open" else w.text for w in words]) != 0


def _normal(line: str) -> str:
    return " ".join(line.split())


# ---------------------------------------------------------------- macros


def _define(state: _State, text: str, line: int | None = None) -> None:
    """Take the definition ``NAME BODY`` or ``NAME(PARAMETERS) BODY``."""
    match = re.match(r"([A-Za-z_]\w*)(\(([^()]*)\))?", text)
    if match is None:
        raise CannotPreprocess("a macro without a name", line)
    parameters = None if match[2] is None else tuple(p.strip() for p in match[3].split(",") if p.strip())
    variadic = bool(parameters) and parameters is not None and parameters[-1].endswith("...")
    if variadic and parameters:
        parameters = (*parameters[:-1], parameters[-1].removesuffix("...").strip() or "__VA_ARGS__")
    body = _words(tokenize(f"0 {text[match.end() :]}"))[1:]  # a first # would be taken for a directive's
    state.macros[match[1]] = _Macro(parameters, tuple(body), variadic)


def _replaced(state: _State, words: Sequence[_Word]) -> list[_Word]:
    """All macros in the words replaced. Raises CannotPreprocess past the budget."""
    out: list[_Word] = []
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        macro = state.macros.get(word.text) if word.kind == "name" and word.text not in word.hidden else None
        if macro is None:
            out.append(word)
            continue
        if macro.parameters is None:
            hidden, body = word.hidden | {word.text}, list(macro.body)
        else:
            given, close = _arguments(waiting, macro)
            if given is None or close is None:
                out.append(word)
                continue
            hidden, body = (word.hidden & close.hidden) | {word.text}, _substituted(state, macro, given)
        state.spent += len(body) + 1
        origin = state.spent
        if state.spent > EXPANSION_LIMIT:
            raise CannotPreprocess(f"macros that expand to over {EXPANSION_LIMIT} tokens")
        if waiting:
            waiting[-1] = replace(waiting[-1], spaced=True)
        waiting += [
            _Word(w.text, w.kind, w.hidden | hidden, w.spaced, w.origin or origin) for w in reversed(_pasted(body))
        ]
    return out


def _arguments(waiting: list[_Word], macro: _Macro) -> tuple[list[list[_Word]] | None, _Word | None]:
    """The arguments behind a macro's name, taken off ``waiting``, and the closing parenthesis; None without any."""
    if not waiting or waiting[-1].text != "(":
        return None, None
    depth, given, wanted = 0, [list[_Word]()], len(macro.parameters or ())
    for count in range(1, len(waiting) + 1):
        word = waiting[-count]
        depth += (word.text in ("(",)) - (word.text in (")",))
        if depth == 0:
            del waiting[-count:]
            return (given if wanted or given != [[]] else []), word
        if word.text == "," and depth == 1 and not (macro.variadic and len(given) == wanted):
            given.append([])
        elif count > 1:
            given[-1].append(word)
    return None, None


def _substituted(state: _State, macro: _Macro, given: list[list[_Word]]) -> list[_Word]:
    """The body with its parameters replaced: expanded, but as they are beside # and ##. No word of an argument touches
    one of the body, unless ## joins them."""
    values = dict(zip(macro.parameters or (), [*given, *[[]] * len(macro.parameters or ())], strict=False))
    expanded: dict[str, list[_Word]] = {}
    out: list[_Word] = []
    body = macro.body
    for index, word in enumerate(body):
        before = body[index - 1].text if index else ""
        behind = body[index + 1].text if index + 1 < len(body) else ""
        if word.text == "#" and behind in values:
            continue
        if word.kind != "name" or word.text not in values:
            out.append(replace(word, spaced=True) if before in values else word)
        elif before == "#":
            text = "".join(f" {w.text}" if w.spaced else w.text for w in values[word.text]).strip()
            text = text.replace("\\", "\\\\").replace('"', '\\"')
            out.append(_Word(f'"{text}"', "string", spaced=True))
        elif "##" in (before, behind):
            out += _apart(values[word.text] or [_Word("", "punct")])
        else:
            if word.text not in expanded:
                expanded[word.text] = _replaced(state, values[word.text])
            out += _apart(expanded[word.text])
        if len(out) > EXPANSION_LIMIT:
            raise CannotPreprocess(f"macros that expand to over {EXPANSION_LIMIT} tokens")
    return out


def _apart(words: list[_Word]) -> list[_Word]:
    """The words with blanks before the first."""
    return [replace(words[0], spaced=True), *words[1:]] if words else []


def _pasted(body: list[_Word]) -> list[_Word]:
    """Words joined where ## stands between them."""
    out: list[_Word] = []
    index = 0
    while index < len(body):
        word = body[index]
        if word.text == "##" and out and index + 1 < len(body):
            left, right = out.pop(), body[index + 1]
            made = tokenize(left.text + right.text) or [Token("punct", "", 0)]
            hidden = left.hidden & right.hidden  # an operator may be several tokens, with nothing between them
            out += [_Word(t.text, t.kind, hidden, left.spaced and not n) for n, t in enumerate(made)]
            index += 2
            continue
        out.append(word)
        index += 1
    return [word for word in out if word.text]  # an empty argument stood for itself beside ##


# ---------------------------------------------------------------- text


def _words(tokens: Sequence[Token]) -> list[_Word]:
    ends = [token.end for token in tokens]
    return [_Word(t.text, t.kind, spaced=t.start > end) for t, end in zip(tokens, [10**9, *ends], strict=False)]


def _told(words: Sequence[_Word]) -> str:
    parts = []
    for before, word in pairwise([_Word("", "punct"), *words]):
        parts.append(f" {word.text}" if word.spaced or before.origin != word.origin else word.text)
    return "".join(parts)


def _expanded(state: _State, text: str, tokens: Sequence[Token], at: int) -> Iterator[str]:
    """The text from ``at`` to the last token, its macros replaced; what stood on several lines keeps their number."""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        gap = text[at : token.start]
        yield gap if not gap.strip() else " " + "\n" * gap.count("\n")
        at = token.end
        macro = state.macros.get(token.text) if token.kind == "name" else None
        if macro is None:
            yield token.text
            index += 1
            continue
        stop = index + 1
        if macro.parameters is not None and stop < len(tokens) and tokens[stop].text == "(":
            stop = _closing(tokens, stop) + 1
        # What comes out may call a macro whose arguments stand behind.
        words = _replaced(state, _words(tokens[index:stop]))
        while words and stop < len(tokens) and tokens[stop].text == "(" and _callable(state, words[-1]):
            close = _closing(tokens, stop) + 1
            words, stop = _replaced(state, [*words, *_words(tokens[stop:close])]), close
        end = tokens[stop - 1].end
        yield f"{_told(words)} " + "\n" * text.count("\n", token.start, end)
        at, index = end, stop


def _callable(state: _State, word: _Word) -> bool:
    macro = state.macros.get(word.text) if word.kind == "name" and word.text not in word.hidden else None
    return macro is not None and macro.parameters is not None


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth == 0:
            return index
    return len(tokens) - 1
