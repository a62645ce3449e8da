"""Functions of the file that a fold calls: which one, and those that are an atomic operation by compare-and-swap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fsr.analysis.macros import expanded
from fsr.source.form import Call, Expr, KernelForm, Member, Name
from fsr.source.names import words
from fsr.source.parse import parse_device_functions
from fsr.source.tokens import tokenize
from fsr.source.walk import BARRIER
from fsr.transform.fewer.forwarding import forwards
from fsr.transform.target import Target

_WAITS = frozenset(["__syncthreads", "__syncwarp", "__threadfence_block"])
_QUALIFIERS = frozenset(["inline", "__inline__", "__forceinline__", "__noinline__", "static", "const", "__device__"])


@dataclass(frozen=True)
class Called:
    """``numbers``: template parameters that are numbers; ``types``: those that stand for types; ``result``: the type
    that it returns, '' where it is not told."""

    form: KernelForm
    numbers: tuple[str, ...]
    types: frozenset[str]
    result: str

    def is_open(self, type_: str) -> bool:
        """Whether a type is not told before a call."""
        return not type_ or bool(words(type_) & self.types)


def called(call: Call, target: Target) -> Called | None:
    """The function that a call means; None where it is not in the file, or another one may be meant."""
    name = call.callee.text if isinstance(call.callee, Name) else ""
    form = _functions(target.source).get(name)
    if form is None or not _defined_once(name, target.source):
        return None
    parameters = form.template_parameters
    types = frozenset(n for kind, n in parameters if kind in ("typename", "class"))
    numbers = tuple(n for kind, n in parameters if kind not in ("typename", "class"))
    return Called(form, numbers, types, _result(name, target.source))


def _defined_once(name: str, source: str) -> bool:
    return len(re.findall(rf"\b{re.escape(name)}\s*\([^;{{}}]*\)\s*\{{", source)) == 1


@lru_cache(maxsize=64)
def _functions(source: str) -> Mapping[str, KernelForm]:
    return {n: expanded(f, source) for n, f in parse_device_functions(source).items()}


def _result(name: str, source: str) -> str:
    """What a function returns, as written."""
    found = re.search(rf"__device__((?:\s+\w+)+?)\s+{re.escape(name)}\s*\(", source)
    found = found or re.search(rf"((?:\b\w+\s+)+)__device__(?:\s+\w+)*?\s+{re.escape(name)}\s*\(", source)
    return " ".join(w for w in found[1].split() if w not in _QUALIFIERS) if found else ""


def is_wait(e: Expr) -> bool:
    """Whether a call makes threads of a block wait for each other, and nothing else."""
    match e:
        case Call(Name(name)) if name in _WAITS:
            return True
        case Call(Name("cg::sync" | "cooperative_groups::sync"), (Name(),)) | Call(Member(Name(), "sync"), ()):
            return True
    return e == BARRIER.expr


@lru_cache(maxsize=64)
def forwarded_atomics(source: str) -> frozenset[str]:
    """Atomics of CUDA's that a file has for one more type, by handing on what they get."""
    functions = parse_device_functions(source).items()
    return frozenset(n for n, form in functions if _defined_once(n, source) and forwards(form, source))


@lru_cache(maxsize=64)
def folds_of_atomics(source: str) -> Mapping[str, str]:
    """Functions that update a number by compare-and-swap as the usual loop does: their names, with Add, Max or Min; and
    :func:`forwarded_atomics`."""
    found = {name: name.removeprefix("atomic") for name in forwarded_atomics(source)}
    for name, form in parse_device_functions(source).items():
        if form.span is None or len(form.params) != 2 or not form.params[0].is_pointer or form.template:
            continue
        text = source.encode()[form.span[0] : form.span[1]].decode()
        fold = _swapped(text, form.params[0].name, form.params[1].name)
        if fold:
            found[name] = fold
    return found


def _swapped(text: str, address: str, value: str) -> str:
    """The operation, if a function's text is that of such a loop, whatever its names are."""
    body = [t.text for t in tokenize(text[text.index("{") :]) if t.kind not in ("comment", "space", "newline")]
    names = {address: "A", value: "V"}
    plain = " ".join(names.get(t, t) for t in body if t not in ("::", "volatile"))
    for pattern, usual in _USUAL:
        plain = re.sub(pattern, usual, plain)
    match = _LOOP.fullmatch(plain)
    if match is None:
        return ""
    seen = rf"__(?:u?int_as_float|longlong_as_double) \( {match['seen']} \)"
    new, ends = (re.sub(seen, "S", match[part] or "") for part in ("new", "ends"))
    if not ends:
        return _NEW.get(new, "")
    return _ENDS.get(ends, "") if new == "V" else ""


_NEW = {"V + S": "Add", "S + V": "Add"}
_NEW |= {f"{f} ( {a} , {b} )": op for op, fs in (("Max", ("fmaxf", "fmax", "max")), ("Min", ("fminf", "fmin", "min")))
         for f in fs for a, b in ("VS", "SV")}  # fmt: skip
_ENDS = {f"{one} {test} {other}": "Min" if (test[0] == "<") == (one == "S") else "Max"
         for one, other in ("SV", "VS") for test in ("<", "< =", ">", "> =")}  # fmt: skip
"""What a loop updates to that ends early where there is nothing to do: ``if (seen <= value) return;``."""
_TYPE = r"(?:unsigned )?(?:long long int|long long|int)"
_USUAL = (  # other spellings of what a loop begins with
    (rf"reinterpret_cast < ({_TYPE} \*) > \( A \)", r"( \1 ) A"),
    (rf"= \* \( {_TYPE} \* \) (\w+) ([;,])", r"= * \1 \2"),
    (rf"{_TYPE} (\w+) ; ({_TYPE} \w+ = \* \w+) ;", r"\2 , \1 ;"),
    (rf"({_TYPE} \w+ = \* \w+) ; {_TYPE} (\w+) ;", r"\1 , \2 ;"),
)
_LOOP = re.compile(
    rf"\{{ {_TYPE} \* (?P<as>\w+) = \( {_TYPE} \* \) A ; {_TYPE} (?P<old>\w+) = \* (?P=as) , (?P<seen>\w+) ; "
    r"do \{ (?P=seen) = (?P=old) ; (?:if \( (?P<ends>.*?) \) (?:return|break) ; )?"
    r"(?P=old) = atomicCAS \( (?P=as) , (?P=seen) , "
    r"__(?:float_as_u?int|double_as_longlong) \( (?P<new>.*) \) \) ; \} while \( (?P=seen) ! = (?P=old) \) ; "
    r"(?:return __(?:u?int_as_float|longlong_as_double) \( (?P=old) \) ; )?\}"
)
