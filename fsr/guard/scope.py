"""What a source declares at file scope, and the state it could keep between launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from fsr.source.items import Item, flat, parse_items
from fsr.source.tokens import Token, close_angle, close_of, tokenize

KEYWORDS = frozenset(
    """if else for while do return break continue switch case goto const constexpr static extern volatile struct class
    union enum template typename using namespace sizeof int float double char bool void unsigned signed short long
    __global__ __device__ __shared__ __constant__ __syncthreads threadIdx blockIdx blockDim gridDim""".split()  # noqa: SIM905
)
_PLAIN_TYPES = frozenset(
    """const static inline __device__ int float double char bool unsigned signed short long size_t ptrdiff_t int8_t
    uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t""".split()  # noqa: SIM905
)
Found = tuple[str, Token]


def first_state(source: str, own: str) -> Found | None:
    """The first declaration that keeps a value from one launch to the next or runs code when the image is loaded,
    unless the baseline holds the same one: (why, where) or None."""
    theirs = {_text(tokens) for _, tokens in declarations(own)}
    found = declarations(source)
    defined = {item.names[-1] for item, _ in found if item.kind == "function" and item.names}
    fixed = _fixed(found)
    for item, tokens in found:
        if _text(tokens) in theirs:
            continue
        why = _file_scope_fault(item, tokens, defined)
        if why is not None:
            return why, tokens[0]
        fault = _static_fault(tokens, fixed)
        if fault is not None:
            return fault
    return None


def kernel_names(source: str) -> dict[str, Token]:
    """The __global__ functions defined, by bare name, with where each begins."""
    functions = ((i, t) for i, t in declarations(source) if i.kind == "function" and "__global__" in i.head and i.names)
    return {item.names[-1]: tokens[0] for item, tokens in functions}


@lru_cache(maxsize=8)  # several checks ask, of each candidate and of an original that stays the same
def declarations(source: str) -> tuple[tuple[Item, list[Token]], ...]:
    """The declarations and definitions at namespace scope with their tokens, bodies included, directives left out."""
    return tuple(_declarations(source))


def _declarations(source: str) -> Iterator[tuple[Item, list[Token]]]:
    for item in flat(parse_items(source, strict=False)):
        tokens = tokenize(source[item.start : item.end])
        code = [Token(t.kind, t.text, item.start + t.start) for t in tokens if t.kind != "directive"]
        if code and code[-1].text == ";":
            code.pop()
        if code:
            yield item, code


def _text(statement: Sequence[Token]) -> str:
    return " ".join(t.text for t in statement)


def _without_template(statement: Sequence[Token]) -> Sequence[Token]:
    while len(statement) > 1 and statement[0].text == "template" and statement[1].text == "<":
        close = close_angle(statement, 1)
        if close is None:
            break
        statement = statement[close + 1 :]
    return statement


def _head(statement: Sequence[Token]) -> Sequence[Token]:
    """Everything before the first body or initialiser, attributes' and parameters' parentheses included."""
    statement, depth = _without_template(statement), 0
    for index, token in enumerate(statement):
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.text in ("{", "="):
            return statement[:index]
    return statement


def _file_scope_fault(item: Item, statement: Sequence[Token], defined: set[str]) -> str | None:
    head = _head(statement)
    words = {t.text for t in head}
    if item.kind in ("alias", "using", "assertion", "function") or words & {"friend", "concept"}:
        return None
    if item.kind == "record":
        bare = _without_template(statement)
        plain = bare[-1].text == "}" or len(bare) <= 3 or "<" in words or "enum" in words
        return None if plain else "a record type that declares an object at file scope"
    if item.kind == "instantiation" and "(" in words and "<" in words:
        return None
    if item.kind in ("prototype", "call", "instantiation"):
        name = item.names[-1] if item.names else statement[0].text
        return None if name in defined else f"the declaration of {name!r}, which the source does not define"
    if {"constexpr", "__shared__"} & {t.text for t in _outside_brackets(head)}:
        return None
    name = next((t.text for t in reversed(head) if t.kind == "name"), "?")
    value = statement[len(statement) - len(_without_template(statement)) + len(head) :]
    constant = "__constant__" in words or ("const" in words and "*" not in words and _plain(head[:-1]))
    if constant and value and not _computed(value):
        return None
    if "__constant__" in words:
        return (
            f"the __constant__ variable {name!r} without a value: callers fill the original's, by name, type and size"
        )
    return f"the variable {name!r} at file scope, which would keep its value between launches"


def _outside_brackets(head: Sequence[Token]) -> list[Token]:
    depth, left = 0, []
    for token in head:
        depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0:
            left.append(token)
    return left


def _plain(type_tokens: Sequence[Token]) -> bool:
    names = [t.text for t in type_tokens if t.kind == "name"]
    return sum(n not in _PLAIN_TYPES for n in names) <= 1  # the variable's own name, before its extents


def _computed(value: Sequence[Token]) -> bool:
    return any(a.kind == "name" and b.text in ("(", "[") for a, b in pairwise(value))


def _fixed(found: Sequence[tuple[Item, Sequence[Token]]]) -> frozenset[str]:
    """The compile-time constants at file scope whose names nothing else in the file may have."""
    names = {
        item.names[-1] for item, tokens in found
        if item.kind == "variable" and item.names and "constexpr" in {t.text for t in _head(tokens)}
    }  # fmt: skip
    made = Counter[str]()
    for _, tokens in found:
        for before, t, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
            if t.text in names and (_names(before) or (after is not None and after.text in ("=", "(", "{"))):
                made[t.text] += 1
    return frozenset(name for name in names if made[name] == 1)


def _names(before: Token | None) -> bool:
    """Whether what stands before a name may be the type or the bracket that declares it."""
    if before is None or before.text in ("return", "case", "else", "sizeof"):
        return False
    return before.kind == "name" or before.text in ("&", "&&", "[", ">", "...")


def _static_fault(statement: Sequence[Token], fixed: frozenset[str]) -> Found | None:
    """A ``static`` inside a body that is neither a function, nor shared memory, nor a compile-time constant, nor a
    number made from such. ``fixed``: of which the names mean nothing else."""
    body = statement[len(_head(statement)) :]
    for index, token in enumerate(body):
        if token.text != "static":
            continue
        stop = next((i for i in range(index, len(body)) if body[i].text in (";", "(", "{", "=")), len(body))
        words = {t.text for t in body[index:stop]}
        if words & {"constexpr", "__shared__"}:
            continue
        if stop < len(body) and body[stop].text == "(":
            close = close_of(body, stop)
            after = body[close + 1].text if close is not None and close + 1 < len(body) else ""
            if after in ("{", "const", "noexcept", "->"):
                continue
        end = next((i for i in range(stop, len(body)) if body[i].text == ";"), len(body))
        told = {t.text for t in body[stop:end] if t.kind == "name"}
        number = told and body[stop].text == "=" and _plain(body[index:stop])
        if "const" in words and stop < end and (not told or (number and told <= fixed)):
            continue
        return "a static variable, which would keep its value between launches", token
    return None
