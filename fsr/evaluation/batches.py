"""Many candidates in one compilation, each in a namespace of its own: what costs a second alone costs a tenth of it.

What compiles together compiles alone. Where a batch fails, the members that the compiler's errors are in are left out;
where it does not say which they are, the batch is halved.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from fsr.backends.flags import split_defines
from fsr.records import Candidate, CompileFailure, Image, Plan
from fsr.source.items import parse_items
from fsr.source.tokens import tokenize

BATCH = 32
TIMEOUT_S = 180.0
Built = tuple[Image, Plan] | CompileFailure
"""An image to run a candidate from, with the plan that launches it there."""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_C_LINKAGE = re.compile(r'\bextern\s+"C"')  # under which functions of two namespaces are one
_ERROR = re.compile(r":(\d+)(?::\d+)?: (?:fatal )?error: ")

_ENTRIES = ("entries of the plan", "__nv_name_map")  # whose lines are no candidate's
_NAMED_IN_ENTRIES = frozenset(["namespace", "record", "alias", "using", "variable", "function"])


class Compiler(Protocol):
    """What batches need of a toolchain."""

    def compile(
        self, candidate: Candidate, *, instrumented: bool = False, timeout_s: float = 60.0
    ) -> Image | CompileFailure:
        """As Toolchain.compile."""


def together(candidates: Sequence[Candidate]) -> tuple[Candidate, list[Plan]]:
    """One source for all, and the plan of each in it. They must carry the same flags."""
    text, plans, _ = _joined(candidates)
    everything = Plan(tuple(x for plan in plans for x in plan.launches), (), candidates[0].plan.flags)
    return Candidate(text, everything), plans


def batches(candidates: Sequence[Candidate], size: int = BATCH) -> Iterator[list[int]]:
    """Indices of candidates that can be compiled together: the same flags, at most ``size``."""
    alike = defaultdict(list)
    for index, candidate in enumerate(candidates):
        alike[candidate.plan.flags].append(index)
    for flags, indices in alike.items():
        step = 1 if split_defines(flags)[1] else size
        yield from (indices[at : at + step] for at in range(0, len(indices), step))


def images(
    toolchain: Compiler, candidates: Sequence[Candidate], *, instrumented: bool = False, size: int = BATCH
) -> dict[int, Built]:
    """What came of each candidate, by index."""
    built: dict[int, Built] = {}
    for indices in batches(candidates, size):
        found = _batch(toolchain, [candidates[i] for i in indices], instrumented)
        built |= dict(zip(indices, found, strict=True))
    return built


def _batch(toolchain: Compiler, candidates: Sequence[Candidate], instrumented: bool) -> list[Built]:
    if len(candidates) == 1:
        return [_alone(toolchain, candidates[0], instrumented)]
    whole, plans = together(candidates)
    image = toolchain.compile(whole, instrumented=instrumented, timeout_s=TIMEOUT_S)
    if isinstance(image, Image):
        return [(image, plan) for plan in plans]
    wrong = _named(image, _joined(candidates)[2])
    if not wrong or len(wrong) == len(candidates):
        middle = len(candidates) // 2
        return [part for half in (candidates[:middle], candidates[middle:]) for part in _batch(
            toolchain, half, instrumented)]  # fmt: skip
    found: dict[int, Built] = {i: CompileFailure(text) for i, text in wrong.items()}
    rest = [i for i in range(len(candidates)) if i not in wrong]
    found |= dict(zip(rest, _batch(toolchain, [candidates[i] for i in rest], instrumented), strict=True))
    return [found[i] for i in range(len(candidates))]


def _alone(toolchain: Compiler, candidate: Candidate, instrumented: bool) -> Built:
    image = toolchain.compile(candidate, instrumented=instrumented, timeout_s=TIMEOUT_S)
    return (image, candidate.plan) if isinstance(image, Image) else image


def _joined(candidates: Sequence[Candidate]) -> tuple[str, list[Plan], list[int]]:
    """The text, the plans, and the line after the last of each candidate's part."""
    includes: dict[str, None] = {}
    parts, plans = [], []
    for number, candidate in enumerate(candidates):
        includes |= dict.fromkeys(_INCLUDE.findall(candidate.source))
        body = _C_LINKAGE.sub('extern "C++"', _INCLUDE.sub("", candidate.source))
        undone = "".join(f"#undef {name}\n" for name in dict.fromkeys(_DEFINE.findall(body)))
        parts.append(f"namespace c{number} {{\n{body}\n}}\n{undone}\n")
        names = _file_scope(candidate.source)
        launches = tuple(replace(x, entry=_within(f"c{number}", x.entry, names)) for x in candidate.plan.launches)
        plans.append(replace(candidate.plan, launches=launches))
    head = "".join(f"{line}\n" for line in includes)
    ends = itertools.accumulate((part.count("\n") for part in parts), initial=head.count("\n"))
    return head + "".join(parts), plans, [end + 1 for end in ends][1:]


def _within(namespace: str, entry: str, names: Set[str]) -> str:
    """An entry of a text that stands in a namespace, its template's arguments too: ``c0::k<c0::Way::fast>``."""
    head, angle, rest = entry.partition("<")
    out, end, before = [f"{namespace}::{head}{angle}"], 0, ""
    for token in tokenize(rest):
        if token.kind == "name" and token.text in names and before not in ("::", "."):
            out += [rest[end : token.start], f"{namespace}::"]
            end = token.start
        before = token.text
    return "".join([*out, rest[end:]])


@lru_cache(maxsize=64)
def _file_scope(source: str) -> frozenset[str]:
    """Names that a text declares in no namespace: an entry may mention those."""
    found, left = set[str](), list(parse_items(source, strict=False))
    while left:
        item = left.pop()
        left += item.children if item.kind == "linkage" or not item.names else ()
        found |= set(item.names) if item.kind in _NAMED_IN_ENTRIES else set()
    return frozenset(found)


def _named(failure: CompileFailure, ends: Sequence[int]) -> Mapping[int, str]:
    """Which candidates the errors are in, with the first of each; none where the time ran out."""
    found: dict[int, str] = {}
    for line in failure.log.splitlines() if not failure.timed_out else ():
        match = None if line.startswith(_ENTRIES) else _ERROR.search(line)
        owner = next((i for i, end in enumerate(ends) if int(match[1]) < end), None) if match else None
        if owner is not None:
            found.setdefault(owner, line)
    return found
