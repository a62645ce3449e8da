"""Switches in LLVM's text as chains of branches, which is what can be watched: a branch has one condition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fsr.backends.host.llvm_text import split_arguments

_FUNCTION = re.compile(r"^define .*?^}", re.M | re.S)
_SWITCH = re.compile(r"^  switch (i\d+) (\S+), label %([\w.$-]+) \[(.*?)\].*?$", re.M | re.S)
_CASE = re.compile(r"i\d+ (-?\w+), label %([\w.$-]+)")
_LABEL = re.compile(r"^([\w.$-]+):", re.M)
_PHI = re.compile(r"^(  %[\w.$-]+ = phi [^\[\n]+?)((?:\[ [^\]]+ \](?:, )?)+)(.*)$", re.M)
_ENTRY = re.compile(r"\[ (.+?), %([\w.$-]+) \]")


def branches_for_switches(text: str) -> str:
    """A module without switches."""
    return _FUNCTION.sub(lambda found: _function(found[0]), text) if "  switch " in text else text


def _function(text: str) -> str:
    number = 0
    while found := _SWITCH.search(text):
        kind, value, default, rows = found.groups()
        cases = _CASE.findall(rows)
        block, name = _block_at(text, found.start()), f"fsr.switch.{number}"
        chain = "\n".join(_chain(name, (kind, value), cases, default)) or f"  br label %{default}"
        text = text[: found.start()] + chain + text[found.end() :]
        blocks = [block, *(f"{name}.{n}" for n in range(1, len(cases)))]
        edges = [(b, target) for b, (_, target) in zip(blocks, cases, strict=False)] + [(blocks[-1], default)]
        text = _with_edges(text, block, edges)
        number += 1
    return text


def _chain(name: str, what: tuple[str, str], cases: list[tuple[str, str]], default: str) -> Iterator[str]:
    for n, (case, target) in enumerate(cases):
        if n:
            yield f"\n{name}.{n}:"
        other = f"{name}.{n + 1}" if n + 1 < len(cases) else default
        yield f"  %{name}.is.{n} = icmp eq {what[0]} {what[1]}, {case}"
        yield f"  br i1 %{name}.is.{n}, label %{target}, label %{other}"


def _block_at(text: str, place: int) -> str:
    """The label that a place is beneath; of the first block, which has none, the number after the parameters'."""
    labels = _LABEL.findall(text, 0, place)
    if labels:
        return str(labels[-1])
    head = text[: text.index("\n")]
    inside = head[head.index("(") + 1 : head.rindex(")")]
    return str(len([a for a in split_arguments(inside) if a.strip()]))


def _with_edges(text: str, block: str, edges: list[tuple[str, str]]) -> str:
    """The phis of what a switch led to, with the blocks that lead there now."""
    parts = re.split(r"(?m)^(?=[\w.$-]+:)", text)
    for n, part in enumerate(parts):
        label = _LABEL.match(part)
        into = [source for source, target in edges if label and target == label[1]]
        if into:
            parts[n] = _PHI.sub(lambda phi, into=into: _phi(phi, block, into), part)
    return "".join(parts)


def _phi(found: re.Match[str], block: str, into: list[str]) -> str:
    entries = _ENTRY.findall(found[2])
    values = [value for value, source in entries if source == block]
    kept = [e for e in entries if e[1] != block]
    if values:
        kept += [(values[0], source) for source in into]
    return found[1] + ", ".join(f"[ {value}, %{source} ]" for value, source in kept) + found[3]
