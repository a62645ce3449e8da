"""Templates of types as a plan instantiates them: what actions see of a kernel ``k<T, 256>`` is ``k<256>`` over float.

Most kernels of libraries are templates over the element type, and hardly any action can tell how wide an element is, or
which branch is taken, while the type has no name. A plan launches a kernel as one instance, mostly. Numbers stay
parameters: a block size that a template takes is one that actions choose anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from fsr.records import Candidate, Launch, Plan
from fsr.source.entry import function_name, template_arguments
from fsr.source.form import Binary, Declare, Expr, If, KernelForm, Literal, Name, Scope, Stmt, Unary
from fsr.source.mapping import map_stmts
from fsr.source.parse import parse_kernels
from fsr.source.tokens import close_angle, source_of, split_commas, tokenize
from fsr.source.walk import BARRIER, variables

_NAMED = ("typename", "class", "bool")  # kinds of what is put in its place


@lru_cache(maxsize=128)
def instantiated(candidate: Candidate) -> Candidate:
    """The candidate with the types and choices (``bool``) that its plan gives a kernel's template in their places; as
    it is where there are none, or a kernel has more than one instance."""
    for name, kernel in reversed(parse_kernels(candidate.source).items()):  # from the end: places before stay
        if kernel.template is not None and kernel.span is not None:
            candidate = _one(candidate, name, kernel)
    return candidate


def _one(candidate: Candidate, name: str, kernel: KernelForm) -> Candidate:
    entries = {one.entry for one in candidate.plan.launches if function_name(one.entry) == name}
    data, (start, end) = candidate.source.encode(), kernel.span or (0, 0)
    text = data[start:end].decode()
    mentioned = sum(t.text == name for t in tokenize(candidate.source)) - sum(t.text == name for t in tokenize(text))
    if len(entries) != 1 or mentioned:
        return candidate
    entry = entries.pop()
    header = _header(text)
    given = template_arguments(entry)
    if header is None or len(given) != len(header[0]):
        return candidate
    parameters, body_at = header
    told = list(zip(parameters, given, strict=True))
    values = {p.name: value for p, value in told if p.named}
    made = _substituted(text[body_at:], values) if values and not _in_macros(candidate.source, values) else None
    if made is None:
        return candidate
    kept = [(p.text, value) for p, value in told if not p.named]
    head = f"template <{', '.join(text for text, _ in kept)}>\n" if kept else ""
    rest = f"<{', '.join(value for _, value in kept)}>" if kept else ""
    renamed = entry[: entry.index("<")].rstrip() + rest
    plan = _renamed(candidate.plan, entry, renamed)
    return replace(candidate, source=(data[:start] + (head + made).encode() + data[end:]).decode(), plan=plan)


def kernels_of(source: str) -> dict[str, KernelForm]:
    """A text's kernels without branches that are never taken, and without barriers behind which nothing follows."""
    return {name: _ended(_folded(kernel)) for name, kernel in parse_kernels(source).items()}


def _ended(kernel: KernelForm) -> KernelForm:
    body = kernel.body
    while body and body[-1] == BARRIER:
        body = body[:-1]
    return kernel if body == kernel.body else replace(kernel, body=body)


def _folded(kernel: KernelForm) -> KernelForm:
    def change(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if not isinstance(s, If) or (holds := _truth(s.test)) is None:
            return s
        taken = s.then if holds else s.orelse
        own = [d.name for d in taken if isinstance(d, Declare)]
        return taken if all(names.count(name) == 1 for name in own) else (Scope(taken),)

    names = variables(kernel.body)
    body = map_stmts(kernel.body, change)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _truth(e: Expr) -> bool | None:
    match e:
        case Name(text="true" | "false" as text) | Literal(text="true" | "false" as text):
            return text == "true"
        case Unary(op="!", operand=operand):
            inner = _truth(operand)
            return None if inner is None else not inner
        case Binary(op="&&" | "||" as op, left=left, right=right):
            sides = (_truth(left), _truth(right))
            decides = op == "||"
            return decides if decides in sides else (not decides if None not in sides else None)
    return None


# ---------------------------------------------------------------- the text


class _Parameter(NamedTuple):
    """Of a template: its kind (``typename``, ``int``), its name, and how it is written."""

    kind: str
    name: str
    text: str

    @property
    def named(self) -> bool:
        """Whether what it stands for takes its place."""
        return self.kind in _NAMED


def _header(text: str) -> tuple[list[_Parameter], int] | None:
    """The parameters of a definition that begins with a template's header, and where the rest of it begins; None where
    there are packs, or templates of templates."""
    tokens = tokenize(text)
    close = close_angle(tokens, 1) if [t.text for t in tokens[:2]] == ["template", "<"] else None
    if close is None or tokens[close].text != ">":
        return None
    told, parts = list[_Parameter](), split_commas(tokens[2:close])
    for part, spelt in zip(parts, source_of(text, parts), strict=True):
        words = [t.text for t in part]
        if "=" in words:
            words = words[: words.index("=")]
        if "..." in words or "." in words or "template" in words or len(words) < 2:
            return None
        told.append(_Parameter(words[0], words[-1], spelt))
    return told, tokens[close + 1].start


def _in_macros(source: str, names: Collection[str]) -> bool:
    """Whether a preprocessor line mentions one of the names: it would stand for nothing where a macro is used."""
    lines = (t.text for t in tokenize(source) if t.kind == "directive")
    return any(set(re.findall(r"[A-Za-z_]\w*", line)) & set(names) for line in lines)


def _substituted(text: str, values: Mapping[str, str]) -> str | None:
    """A definition with what its parameters stand for; None where a name may stand for something else there."""
    tokens, out, end = tokenize(text), list[str](), 0
    for at, token in enumerate(tokens):
        if token.kind != "name" or token.text not in values:
            if token.text == "typename":
                return None
            continue
        before = tokens[at - 1].text if at else ""
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if before in (".", "->", "::") or after == "::":
            return None
        value = values[token.text]
        plain = value if " " not in value or after != "(" else f"({value})"
        out += [text[end : token.start], plain]
        end = token.end
    return "".join([*out, text[end:]])


def _renamed(plan: Plan, entry: str, renamed: str) -> Plan:
    def change(one: Launch) -> Launch:
        return replace(one, entry=renamed) if one.entry == entry else one

    return replace(plan, launches=tuple(map(change, plan.launches)))
