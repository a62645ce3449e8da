"""Faults in what is computed: operators, operands, signs, functions."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.mutation.ground import Edit, Function

_BINARY = {
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "|",
}  # fmt: skip
_ASSIGNING = {
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "<<=": ">>=", ">>=": "<<=", "&=": "|=", "|=": "&=", "^=": "|=",
}  # fmt: skip
_FUNCTIONS = {
    "fmaxf": "fminf", "fminf": "fmaxf", "fmax": "fmin", "fmin": "fmax", "max": "min", "min": "max",
    "expf": "exp2f", "__expf": "exp2f", "exp": "exp2", "exp2f": "expf", "logf": "log2f", "log2f": "logf",
    "rsqrtf": "sqrtf", "sqrtf": "fabsf", "sqrt": "fabs", "fabsf": "floorf", "floorf": "ceilf", "ceilf": "floorf",
    "rintf": "truncf", "roundf": "rintf", "truncf": "floorf", "tanhf": "sinhf", "sinf": "cosf", "cosf": "sinf",
    "erff": "tanhf", "erfcf": "erff", "__hmax": "__hmin", "__hmin": "__hmax", "__hadd": "__hsub", "__hmul": "__hadd",
    "__popc": "__clz", "__clz": "__popc", "__ffs": "__clz", "atan2f": "fmodf",
}  # fmt: skip


def operators(function: Function) -> Iterator[Edit]:
    """Another operator, or an operand that is lost."""
    tokens = function.tokens
    for index, token in enumerate(tokens):
        if token.text in _ASSIGNING:
            yield Edit("assignment-swapped", token.start, token.end, _ASSIGNING[token.text])
            yield Edit("assignment-plain", token.start, token.end, "=")
        if token.text not in _BINARY or not function.follows_operand(index) or _declares(function, index):
            continue
        yield Edit("operator-swapped", token.start, token.end, _BINARY[token.text])
        last = tokens[function.operand_end(index + 1)].end
        if token.text in ("+", "-", "|", "^") and tokens[index + 1].text not in ("-", "+", "!", "~", "*", "&"):
            yield Edit("operand-dropped", token.start, last, "")
        if token.text in ("*", "/", "%") and tokens[index + 1].kind != "punct":
            yield Edit("factor-dropped", token.start, last, "")
        if token.text in ("+", "-", "*"):
            first = tokens[function.operand_start(index - 1)].start
            yield Edit("left-operand-dropped", first, token.end, "-" if token.text == "-" else "")


def signs(function: Function) -> Iterator[Edit]:
    """A minus that is lost."""
    for index, token in enumerate(function.tokens):
        if token.text == "-" and not function.follows_operand(index):
            yield Edit("sign-dropped", token.start, token.end, "")


def calls(function: Function) -> Iterator[Edit]:
    """A function's neighbour in its place, its arguments swapped, a call that is only its first argument."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.kind != "name" or tokens[index + 1].text != "(" or (index and tokens[index - 1].text in (".", "->")):
            continue
        if token.text not in _FUNCTIONS:
            continue
        yield Edit("function-swapped", token.start, token.end, _FUNCTIONS[token.text])
        given = function.arguments(index + 1)
        close = function.close(index + 1)
        if given and close is not None:
            first = function.text(*given[0]).strip()
            yield Edit("function-dropped", token.start, tokens[close].end, f"({first})")
            if len(given) == 2:
                yield Edit("function-second", token.start, tokens[close].end, f"({function.text(*given[1]).strip()})")


def steps(function: Function) -> Iterator[Edit]:
    """What counts up counts down, or not in ones."""
    for index, token in enumerate(function.tokens):
        if token.text in ("++", "--") and index and index + 1 < len(function.tokens):
            before, after = function.tokens[index - 1], function.tokens[index + 1]
            if after.text in (")", ";") and before.kind == "name":
                yield Edit("step-doubled", token.start, token.end, f" {token.text[0]}= 2")


def _declares(function: Function, index: int) -> bool:
    """Whether a star or an ampersand is a type's."""
    before, after = function.tokens[index - 1], function.tokens[index + 1 : index + 2]
    if function.tokens[index].text not in ("*", "&"):
        return False
    return before.text.endswith("_t") or (bool(after) and after[0].text in (">", ")", "const", "__restrict__"))
