"""Versions of a file's device functions that take pointers with a stride where they took plain ones.

A version has the function's name, so that calls stay as they are; the function itself stays where it is called with
plain pointers too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fsr.analysis.effects import element_type
from fsr.analysis.macros import expanded
from fsr.source.emit import emit_stmts
from fsr.source.form import KernelForm
from fsr.source.items import flat, parse_items
from fsr.source.macros import macros
from fsr.source.names import words
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.tokens import close_of, source_of, split_commas, tokenize
from fsr.source.walk import Block, kernel_names, names_mentioned
from fsr.transform.scratch.buffers import Unfit
from fsr.transform.scratch.pointers import Pointers

Wanted = tuple[str, frozenset[int]]
_MOST = 16


@dataclass(frozen=True, slots=True)
class Version:
    """A function with pointers with a stride in some places."""

    function: KernelForm
    head: str
    text: str
    body: Block
    pointers: Pointers


def versions(source: str, calls: Iterable[Wanted], before: int, *, wide: bool) -> Mapping[Wanted, Version]:
    """The versions that calls need, and those that these need. ``before``: where the first caller stands.

    Raises Unfit where a function allows none.
    """
    functions, defined = parse_device_functions(source), _definitions(source)
    found: dict[Wanted, Version] = {}
    left = [w for w in calls if w[1]]
    while left:
        name, places = wanted = left.pop()
        if wanted in found:
            continue
        function = functions.get(name)
        if function is None or defined.count(name) > 1 or (function.span or (before, 0))[0] >= before:
            raise Unfit
        if len(found) == _MOST or max(places) >= len(function.params):
            raise Unfit
        found[wanted] = _version(source, function, places, wide=wide)
        left += [w for w in found[wanted].pointers.calls if w[1]]
    return found


def edits(
    source: str, made: Mapping[Wanted, Version], rewritten: Mapping[str, Pointers]
) -> list[tuple[tuple[int, int], str]]:
    """What stands in place of which bytes of a text: each version behind its function, or instead. ``rewritten``:
    kernels that are written anew."""
    kept = _kept(source, made, rewritten)
    found = []
    for name in {name for name, _ in made}:
        own = [v for (n, _), v in sorted(made.items(), key=lambda x: (x[0][0], sorted(x[0][1]))) if n == name]
        span = own[0].function.span
        assert span is not None
        text = [source.encode()[slice(*span)].decode()] if name in kept else []
        text += [v.head + ";" for v in own if len(own) > 1]  # they may call one another
        found.append((span, "\n\n".join([*text, *(v.text for v in own)])))
    return found


def check_macros(source: str, form: KernelForm, pointers: Pointers) -> None:
    """Raise Unfit where a macro that is still in a kernel or function hides a pointer, or the place of a thread."""
    hidden = {"threadIdx", "blockIdx", *pointers.strided, *pointers.buffers}
    if pointers.slicing is not None:
        hidden |= pointers.slicing.ids
    used = kernel_names(form)
    if any(m.name in used and words(m.body) & hidden - set(m.params or ()) for m in macros(source)):
        raise Unfit


def _version(source: str, function: KernelForm, places: Collection[int], *, wide: bool) -> Version:
    pointers = Pointers(wide=wide)
    for n in places:
        param = function.params[n]
        if param.type.count("*") != 1 or "&" in param.type or "volatile" in param.type:
            raise Unfit
        if any(p.default for p in function.params):
            raise Unfit
        pointers.strided[param.name] = element_type(param.type)
    form = expanded(function, source)
    if 'extern "C"' in function.prefix or names_mentioned(form.body) & {"threadIdx", "blockIdx"}:
        raise Unfit
    given = {function.params[n].name: pointers.strided[function.params[n].name] for n in places}
    body = pointers.rewritten(form.body)
    check_macros(source, form, pointers)
    texts = {n: f"{pointers.type_of(given[function.params[n].name])} {function.params[n].name}" for n in places}
    head, brace = _head(source, function, texts)
    return Version(function, head, f"{head}{brace}\n{emit_stmts(body, 1)}}}", body, pointers)


def _head(source: str, function: KernelForm, params: Mapping[int, str]) -> tuple[str, str]:
    """The function's own head, with some parameters another, and what stands up to its body, the brace included."""
    own = source.encode()[slice(*(function.span or (0, 0)))].decode()
    tokens = tokenize(own)
    at = next((i for i, t in enumerate(tokens) if t.text == function.name and tokens[i + 1].text == "("), None)
    close = None if at is None else close_of(tokens, at + 1)
    brace = None if close is None else next((t for t in tokens[close:] if t.text == "{"), None)
    if at is None or close is None or brace is None:
        raise Unfit
    written = source_of(own, split_commas(tokens[at + 2 : close]))
    if len(written) != len(function.params):
        raise Unfit
    listed = ", ".join(params.get(n, text) for n, text in enumerate(written))
    head = f"{own[: tokens[at + 1].end]}{listed}{own[tokens[close].start : brace.start]}"
    return head.rstrip(), head[len(head.rstrip()) :] + brace.text


def _definitions(source: str) -> Sequence[str]:
    """The names of all functions defined, once a definition."""
    items = flat(parse_items(source, strict=False))
    return [i.names[0] for i in items if i.kind == "function" and i.body is not None and i.names]


def _kept(source: str, made: Mapping[Wanted, Version], rewritten: Mapping[str, Pointers]) -> frozenset[str]:
    """The functions that have versions and are called with plain pointers too."""
    names = {name for name, _ in made}
    others = [f for f in parse_device_functions(source).values() if f.name not in names]
    others += [k for k in parse_kernels(source).values() if k.name not in rewritten]
    used = {n for m in macros(source) for n in words(m.body)}
    used |= {n for f in others for n in kernel_names(f)}
    used |= {n for p in rewritten.values() for n, places in p.calls if not places}
    used |= {n for v in made.values() for n, places in v.pointers.calls if not places}
    while True:
        own = {v.function.name: v.function for v in made.values() if v.function.name in used}
        more = {n for f in own.values() for n in names_mentioned(f.body) & names} - used
        if not more:
            return frozenset(names & used)
        used |= more
