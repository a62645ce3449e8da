"""Entry expressions, as contracts and launches write them: ``ns::k<256, float>``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from fsr.source.integers import integers
from fsr.source.macros import expand, function_macros, macros
from fsr.source.tokens import Token, close_angle, spelt, split_commas, tokenize


def bare_name(entry: str) -> str:
    """``ns::k`` of ``ns::k<256, float>``; a leading ``::`` is dropped."""
    return entry.split("<", 1)[0].strip().removeprefix("::")


def spelt_out(entry: str, kernel: str) -> str:
    """An entry with all of its kernel's namespaces: ``ns::k<256>`` of ``k<256>`` and ``ns::k``."""
    at = entry.find("<")
    return kernel + (entry[at:] if at >= 0 else "")


def without_macros(entry: str, text: str) -> str:
    """An entry with what macros of a text stand for, those that have one meaning: ``k<256>`` of ``k<TPB>``. Compilers
    look the names of an entry up where no macro is defined."""
    at = entry.find("<")
    if at < 0:
        return entry
    plain = {(m.name, m.body): m for m in macros(text) if m.params is None and m.body}
    names, numbers = [name for name, _ in plain], integers(text)
    known = {n: replace(m, body=str(numbers.get(n, m.body))) for (n, _), m in plain.items() if names.count(n) == 1}
    return entry[:at] + expand(entry[at:], {**function_macros(text), **known})


def beside(entry: str, name: str) -> str:
    """The entry of another kernel in the same namespaces: ``ns::fast`` for ``ns::k<256>``."""
    return "".join((*entry.split("<", 1)[0].rpartition("::")[:2], name))


def function_name(entry: str) -> str:
    """``k`` of ``ns::k<256, float>``."""
    return bare_name(entry).rsplit("::", 1)[-1].strip()


def template_arguments(entry: str) -> list[str]:
    """['256', 'float'] of ``k<256, float>``; [] without any."""
    tokens = tokenize(entry)
    at = next((i for i, t in enumerate(tokens) if t.text == "<"), None)
    if at is None:
        return []
    close = close_angle(tokens, at) or len(tokens) - 1
    return [spelt(part) for part in split_commas(tokens[at + 1 : close])]


class TemplateParameter(NamedTuple):
    """A parameter of a template. ``default``: '' for none; ``pack``: it takes any number of arguments."""

    text: str
    name: str
    default: str
    pack: bool


def template_parameters(tokens: Sequence[Token]) -> list[TemplateParameter]:
    """The parameters of a definition that begins with ``template <...>``; [] for others."""
    close = close_angle(tokens, 1) if [t.text for t in tokens[:2]] == ["template", "<"] else None
    found = list[TemplateParameter]()
    for part in split_commas(tokens[2:close]) if close else ():
        texts = [t.text for t in part]
        equals = texts.index("=") if "=" in texts else len(texts)
        names = [t.text for t in part[:equals] if t.kind == "name"]
        pack = "..." in "".join(texts)
        found.append(TemplateParameter(spelt(part), names[-1] if names else "", spelt(part[equals + 1 :]), pack))
    return found
