"""What a source declares at file scope, and the state it could keep between launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from fsr.source.tokens import Token, close_angle, close_of

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


def first_state(tokens: Sequence[Token], own: Sequence[Token]) -> Found | None:
    """The first declaration that keeps a value from one launch to the next or runs code when the image is loaded,
    unless the baseline holds the same one: (why, where) or None."""
    theirs = {_text(s) for s in statements(own)}
    defined = {name for s in statements(tokens) if (name := _function_name(s)) and _has_body(s)}
    for statement in statements(tokens):
        if _text(statement) in theirs:
            continue
        why = _file_scope_fault(statement, defined)
        if why is not None:
            return why, statement[0]
        found = _static_fault(statement)
        if found is not None:
            return found
    return None


def kernel_names(tokens: Sequence[Token]) -> dict[str, Token]:
    """The __global__ functions defined, by bare name."""
    found = {}
    for statement in statements(tokens):
        head = _head(statement)
        if any(t.text == "__global__" for t in head) and _has_body(statement):
            name = _function_name(statement)
            if name:
                found[name] = statement[0]
    return found


def statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The declarations and definitions at namespace scope, bodies included, directives left out."""
    code = [t for t in tokens if t.kind != "directive"]
    current: list[Token] = []
    index = 0
    while index < len(code):
        token = code[index]
        if token.text == "}" and not current:
            index += 1  # the end of a namespace
            continue
        if token.text == "{":
            close = close_of(code, index)
            if current and _opens_namespace(current):
                current, index = [], index + 1
                continue
            stop = len(code) - 1 if close is None else close
            current.extend(code[index : stop + 1])
            index = stop + 1
            if _is_function(current):
                yield current
                current = []
            continue
        if token.text == ";":
            if current:
                yield current
            current = []
        elif token.text in "([":
            close = close_of(code, index)
            stop = len(code) - 1 if close is None else close
            current.extend(code[index : stop + 1])
            index = stop
        else:
            current.append(token)
        index += 1
    if current:
        yield current


def _opens_namespace(head: Sequence[Token]) -> bool:
    if head[0].text in ("namespace", "inline") and any(t.text == "namespace" for t in head[:2]):
        return True
    return head[0].text == "extern" and len(head) == 2 and head[1].kind == "string"


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


def _function_name(statement: Sequence[Token]) -> str:
    """The declared function's name: the last name that stands right before a parenthesis at depth 0."""
    head, name, depth = _head(statement), "", 0
    for before, token in pairwise(head):
        if token.text == "(" and depth == 0 and before.kind == "name" and not before.text.startswith("__"):
            name = before.text
            break
        depth += (before.text in "([") - (before.text in ")]")
    return name


def _has_body(statement: Sequence[Token]) -> bool:
    return statement[-1].text == "}"


def _is_function(statement: Sequence[Token]) -> bool:
    head = _head(statement)
    record = bool(head) and head[0].text in ("struct", "class", "union", "enum", "typedef")
    return bool(_function_name(statement) or "operator" in {t.text for t in head}) and not record


def _file_scope_fault(statement: Sequence[Token], defined: set[str]) -> str | None:
    head = _head(statement)
    words = {t.text for t in head}
    if not head or head[0].text in ("using", "typedef", "static_assert", "friend", "namespace"):
        return None
    if head[0].text in ("struct", "class", "union", "enum"):
        plain = statement[-1].text == "}" or len(statement) <= 3 or head[0].text == "enum"
        return None if plain else "a record type that declares an object at file scope"
    if _is_function(statement):
        if _has_body(statement) or _function_name(statement) in defined:
            return None
        return f"the declaration of {_function_name(statement)!r}, which the source does not define"
    if "constexpr" in words or "__shared__" in words or (head[0].text == "template" and len(head) < 2):
        return None
    name = next((t.text for t in reversed(head) if t.kind == "name"), "?")
    value = statement[len(statement) - len(_without_template(statement)) + len(head) :]
    constant = "__constant__" in words or ("const" in words and "*" not in words and _plain(head[:-1]))
    if constant and value and not _computed(value):
        return None
    return f"the variable {name!r} at file scope, which would keep its value between launches"


def _plain(type_tokens: Sequence[Token]) -> bool:
    names = [t.text for t in type_tokens if t.kind == "name"]
    return sum(n not in _PLAIN_TYPES for n in names) <= 1  # the variable's own name, before its extents


def _computed(value: Sequence[Token]) -> bool:
    return any(a.kind == "name" and b.text in ("(", "[") for a, b in pairwise(value))


def _static_fault(statement: Sequence[Token]) -> Found | None:
    """A ``static`` inside a body that is neither a function, nor shared memory, nor a compile-time constant."""
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
        if "const" in words and stop < end and not any(t.kind == "name" for t in body[stop:end]):
            continue
        return "a static variable, which would keep its value between launches", token
    return None
