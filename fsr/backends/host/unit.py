"""From a candidate's text to the unit that a C++ compiler takes, line for line.

Three constructs of CUDA cannot be had by macros and headers: ``extern __shared__ T name[];``, which becomes a pointer
to the launch's dynamic shared memory, shared arrays of structures with a constructor, which CUDA wants to be empty and
C++ would run, and inline PTX (:mod:`fsr.backends.host.ptx`); nothing else in the candidate changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsr.backends.host.ptx import rewrite_ptx
from fsr.backends.own_types import own_types, renamed

SOURCE_NAME = "candidate.cu"

_BLANKS = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_EXTERN_SHARED = re.compile(r"\b(?:extern\b[^;{}()]*?\b__shared__|__shared__\b[^;{}()]*?\bextern)\b[^;{}]*;")
_DROPPED = re.compile(
    r"\b(?:extern|__shared__)\b|\b(?:__align__|__builtin_align__|alignas)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
    r"|\b__attribute__\s*\(\(.*?\)\)\)?|\[\[.*?\]\]",
    re.DOTALL,
)
_ARRAY = re.compile(
    r"^(?P<type>[^\[\]]*?)(?P<name>[A-Za-z_]\w*)\s*\[(?P<extent>[^\[\]]*)\](?P<inner>(?:\s*\[[^\[\]]+\])*)\s*;$",
    re.DOTALL,
)


def blank_comments(source: str) -> str:
    """The text with comments and the insides of literals replaced by spaces; every position stays what it was."""

    def blank(found: re.Match[str]) -> str:
        text = found.group()
        keep = 1 if text[0] in "\"'" else 0
        inner = text[keep : len(text) - keep]
        return text[:keep] + re.sub(r"[^\n]", " ", inner) + text[len(text) - keep :]

    return _BLANKS.sub(blank, source)


def rewrite_dynamic_shared(source: str) -> str:
    """``extern __shared__ T name[];`` as a constant pointer, on the same lines, and ``T name[N]`` as a reference, which
    has that size. Declarations that are not a single array stay as they are, for the compiler to refuse."""
    parts, end = [], 0
    for found in _EXTERN_SHARED.finditer(blank_comments(source)):
        pointer = _in_its_place(found.group())
        if pointer is None:
            continue
        parts += [source[end : found.start()], pointer]
        end = found.end()
    return "".join([*parts, source[end:]])


def rewrite_constructed_shared(source: str) -> str:
    """``__shared__ T name[N];`` of a structure that has a constructor as memory of its size, and a reference to it, on
    the same line: what is thread-local to C++ would be built at its first use, under a guard that all threads read."""
    blank = blank_comments(source)
    if "__shared__" not in blank or not (types := _constructed(blank)):
        return source
    shared = re.compile(
        rf"\b__shared__\s+(?P<type>{'|'.join(sorted(types))})\s+(?P<name>[A-Za-z_]\w*)(?P<extents>(?:\s*\[[^\[\];]*\])*)\s*;"
    )
    parts, end = [], 0
    for found in shared.finditer(blank):
        type_, name, extents = found["type"], found["name"], "".join(found["extents"].split("\n"))
        breaks = "\n" * found[0].count("\n")
        memory = f"alignas({type_}) __shared__ unsigned char {name}_[sizeof({type_}{extents})];"
        parts += [
            source[end : found.start()],
            f"{memory} {type_} (&{name}){extents} = *reinterpret_cast<{type_} (*){extents}>({name}_);{breaks}",
        ]
        end = found.end()
    return "".join([*parts, source[end:]])


def _constructed(blank: str) -> set[str]:
    """The structures of a text, without comments, that have a constructor."""
    found = set[str]()
    for head in re.finditer(r"\b(?:struct|class)\s+([A-Za-z_]\w*)[^;{}()]*\{", blank):
        depth, at = 1, head.end()
        while depth and at < len(blank):
            depth += (blank[at] == "{") - (blank[at] == "}")
            at += 1
        if re.search(rf"(?<![~\w:.>]){head[1]}\s*\(", blank[head.end() : at]):
            found.add(head[1])
    return found


def _in_its_place(declaration: str) -> str | None:
    flat = declaration.replace("\\\n", " \n")
    array = _ARRAY.match(_DROPPED.sub(" ", flat).strip())
    if array is None:
        return None
    type_, name, extent, inner = (" ".join(array[part].split()) for part in ("type", "name", "extent", "inner"))
    # A macro's lines end in backslashes; they move behind the statement with the line breaks they belong to.
    breaks = "\\\n" * declaration.count("\\\n") or "\n" * declaration.count("\n")
    if extent:
        whole = f"[{extent}]{inner}"
        return f"{type_} (&{name}){whole} = *reinterpret_cast<{type_} (*){whole}>(fsr_dynamic_shared);{breaks}"
    of = f"(*){inner}" if inner else "*"
    pointer = f"(*const {name}){inner}" if inner else f"*const {name}"
    return f"{type_} {pointer} = reinterpret_cast<{type_} {of}>(fsr_dynamic_shared);{breaks}"


def unit_text(source: str, entries: Sequence[str], definitions: Sequence[str] = ()) -> str:
    """What is compiled: macro definitions, the candidate under its own name and line numbers, and a descriptor
    ``fsr_entry_<i>`` for each entry expression."""
    own = own_types(source)
    source = renamed(source, own)
    text, headers = rewrite_ptx(source, blank_comments(source))
    needed = dict.fromkeys([*headers, *(["fsr/ptx_memory.h"] if "__cvta_generic_to_shared" in source else [])])
    lines = [
        *(f"#include <{header}>" for header in needed),
        *definitions,
        f'#line 1 "{SOURCE_NAME}"',
        rewrite_dynamic_shared(rewrite_constructed_shared(text)),
    ]
    lines.append('#line 1 "entries of the plan"')
    lines += [f"FSR_ENTRY({index}, {renamed(entry, own)})" for index, entry in enumerate(entries)]
    return "\n".join(lines) + "\n"
