"""The value of a preprocessor condition: macros replaced, then integers and C's operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fsr.source.conditionals import directive_name
from fsr.source.tokens import tokenize

_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<=": lambda a, b: int(a <= b), ">=": lambda a, b: int(a >= b), "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
    },
    {"<<": lambda a, b: a << b if 0 <= b < 64 else 0, ">>": lambda a, b: a >> b if 0 <= b < 64 else 0},
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: _quotient(a, b), "%": lambda a, b: a - b * _quotient(a, b)},
)  # fmt: skip
_UNARY: dict[str, Callable[[int], int]] = {
    "!": lambda a: int(not a), "-": lambda a: -a, "+": lambda a: a, "~": lambda a: ~a,
}  # fmt: skip
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uUlL]*", re.ASCII)
_DEEPEST = 40  # a bracket is a dozen calls


class NotConstant(Exception):  # noqa: N818  # a reason, not an error of the program
    """Why the words are no condition."""


def value_of(words: Sequence[str]) -> int:
    """The condition's value; names that are left count as 0. Raises NotConstant."""
    if len(words) > 1000:
        raise NotConstant("it is too long")
    value, rest = _choice(_together(words), 0)
    if rest:
        raise NotConstant(f"{rest[0]!r} in it")
    return value


def _together(words: Sequence[str]) -> list[str]:
    """Operators of two characters, which the reader of tokens has split."""
    found: list[str] = []
    for word in words:
        if found and f"{found[-1]}{word}" in ("||", "&&", "==", "!=", "<=", ">=", "<<", ">>"):
            found[-1] += word
        else:
            found.append(word)
    return found


def _choice(words: list[str], depth: int) -> tuple[int, list[str]]:
    value, words = _binary(words, 0, depth)
    if words[:1] != ["?"]:
        return value, words
    chosen, words = _choice(words[1:], depth + 1)
    if words[:1] != [":"]:
        raise NotConstant("'?' without ':'")
    other, words = _choice(words[1:], depth + 1)
    return (chosen if value else other), words


def _binary(words: list[str], level: int, depth: int) -> tuple[int, list[str]]:
    if level == len(_LEVELS):
        return _operand(words, depth)
    value, words = _binary(words, level + 1, depth)
    while words and words[0] in _LEVELS[level]:
        operator = _LEVELS[level][words[0]]
        right, words = _binary(words[1:], level + 1, depth)
        value = operator(value, right)
        if abs(value) >= 1 << 64:
            raise NotConstant("a number of more than 64 bits")
    return value, words


def _operand(words: list[str], depth: int) -> tuple[int, list[str]]:
    if not words or depth > _DEEPEST:
        raise NotConstant("it ends too early" if not words else "brackets nested too deep")
    word, rest = words[0], words[1:]
    if word in _UNARY:
        value, rest = _operand(rest, depth + 1)
        return _UNARY[word](value), rest
    if word == "(":
        value, rest = _choice(rest, depth + 1)
        if rest[:1] != [")"]:
            raise NotConstant("'(' without ')'")
        return value, rest[1:]
    if number := _NUMBER.fullmatch(word.replace("'", "")):
        digits = number[1]
        octal = digits.startswith("0") and digits.isdigit() and len(digits) > 1
        return int(digits, 8 if octal else 0), rest
    if re.fullmatch(r"[A-Za-z_]\w*", word, re.ASCII):
        return int(word == "true"), rest
    raise NotConstant(f"{word!r} in it")


def _quotient(a: int, b: int) -> int:
    """C's division, towards zero."""
    if b == 0:
        raise NotConstant("a division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Macros of C's and CUDA's headers that a text could ask for to learn who compiles it.
_HEADERS = re.compile(
    r"(_[_A-Z]\w*|(CUDA|CUDART|CUB|THRUST|CCCL|NV|LIBCUDACXX|FSR|fsr|FLT|DBL|LDBL|INT|UINT|LONG|ULONG|LLONG|ULLONG|CHAR|SHRT"
    r"|SIZE|PTRDIFF|M|FP|HUGE|EOF|NULL|BUFSIZ|RAND|EXIT|CLOCKS|TMP|FILENAME|SEEK|SIG|E|INFINITY|NAN|NDEBUG|WCHAR|MATH)"
    r"(_\w*|\d*)?|linux|unix|i386|assert|errno|std(in|out|err)|offsetof|isnan|isinf|isfinite|signbit|min|max|warpSize"
    r"|alloca|threadIdx|blockIdx|blockDim|gridDim|signed_\w*|major|minor|makedev)"
)


_GONE = frozenset(["__DEVICE_EMULATION__"])  # nvcc's, for kernels run on a CPU: not since CUDA 3.1


def of_headers(name: str) -> bool:
    """Whether a macro of that name may come with a compiler or with headers of C and CUDA."""
    return name not in _GONE and _HEADERS.fullmatch(name) is not None


# Reserved names that compilers and their headers define and that the head of a kernel may ask for; what else looks like
# one is its author's. Instruction sets of CPUs are left out.
_COMPILERS = re.compile(
    r"_+(CUDA|CUDACC|CUDART|CUB|THRUST|CCCL|NV|HIP|GNU|GCC|GX|CLANG|clang|LLVM|llvm|MSC|MSVC|WIN|INTEL|ICC|PGI|EDG"
    r"|STD|std|STRICT|ANSI|OPTIMIZE|EXCEPTIONS|ELF|SSE|AVX|FMA|FLT|DBL|INT|SIZE|CHAR|BYTE|FAST|cpp|cplusplus|has"
    r"|builtin|x86|i386|amd64|arm|ARM|aarch64|linux|unix|APPLE|MACH|BIG|LITTLE|LP64|DEVICE_LAUNCH|VECTOR|DRIVER|SM"
    r"|COUNTER|FILE|LINE|DATE|TIME|VERSION|FINITE|NO|ORDER|POINTER|U?INT\w*|S?CHAR|SHRT|L?LONG|LDBL|WCHAR|PTRDIFF"
    r"|PTX|GLIBC|gnu|func|VA|OPENMP|OPENACC|FSR|fsr)([_\d]|[A-Z]*_|$)\w*|\w+_[Hh](PP|pp)?_*"
)


def of_compilers(name: str) -> bool:
    """As :func:`of_headers`, of a name in the head of a function that has several: ``__MY_DEBUG__`` is not theirs."""
    return of_headers(name) and (not name.startswith("_") or _COMPILERS.fullmatch(name) is not None)


def branch_holds(
    directive: str, known: Mapping[str, str | None], foreign: Callable[[str], bool] = of_headers
) -> bool | None:
    """Whether an ``#if`` or ``#elif`` holds, given the object-like macros; None where it cannot be told. ``foreign``:
    whether what is not known may be defined by others than the file."""
    test, name = test_of(directive), directive_name(directive)
    if name in ("ifdef", "ifndef", "elifdef", "elifndef"):
        defined = _is_defined(test, known, foreign)
        return None if defined is None else defined == (name in ("ifdef", "elifdef"))
    words = _Asked(known, foreign).words([t.text for t in tokenize(test)])
    try:
        return None if words is None else value_of(words) != 0
    except NotConstant:
        return None


def test_of(directive: str) -> str:
    """What a conditional asks, without comments and line ends."""
    text = re.sub(r"^#\s*\w*", "", directive)
    return re.sub(r"/\*.*?\*/|//[^\n]*|\\\r?\n", " ", text, flags=re.DOTALL).strip()


@dataclass(frozen=True, slots=True)
class _Asked:
    """A condition's words with macros replaced."""

    known: Mapping[str, str | None]
    foreign: Callable[[str], bool]

    def words(self, words: Sequence[str], depth: int = 0) -> list[str] | None:
        """None where one names what is not known."""
        found: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            if word == "defined":
                bracket = words[at + 1 : at + 2] == ["("]
                name = "".join(words[at + 1 + bracket : at + 2 + bracket])
                if (defined := _is_defined(name, self.known, self.foreign)) is None:
                    return None
                found.append(str(int(defined)))
                at += 4 if bracket else 2
                continue
            if re.fullmatch(r"[A-Za-z_]\w*", word) and word not in ("true", "false"):
                body = self.known.get(word, "" if self.foreign(word) else "0")
                inner = self.words([t.text for t in tokenize(body)], depth + 1) if body and depth < 16 else None
                if inner is None:
                    return None
                found += ["(", *inner, ")"]
            else:
                found.append(word)
            at += 1
        return found


def _is_defined(name: str, known: Mapping[str, str | None], foreign: Callable[[str], bool]) -> bool | None:
    """None where it cannot be told. What no file defines is not defined: no other header reaches a device unit."""
    if name in known:
        return None if known[name] is None else True
    return None if foreign(name) else False
