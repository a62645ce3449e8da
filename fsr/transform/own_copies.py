"""A kernel that a plan launches in ways that have nothing in common, as a kernel for each of them.

What actions take for granted of a launch (what its arguments are, which of them share memory, how large they are) need
not hold of another one. Where all launches of a kernel do the same to other buffers or with other numbers, one of them
stands for all (:mod:`fsr.transform.one_launch`); where not, none would be changed. With a copy each, all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fsr.contract.model import Argument, Contract
from fsr.errors import ContractError
from fsr.records import Candidate, Launch
from fsr.source.entry import function_name
from fsr.source.form import KernelForm
from fsr.source.parse import parse_kernels
from fsr.source.tokens import renamed, tokenize
from fsr.transform.launch_alone import alike, passable

_MOST = 6  # kernels in the place of one: each is compiled in every candidate


@lru_cache(maxsize=128)
def own_copies(candidate: Candidate, contract: Contract) -> Candidate:
    """The candidate with a kernel for each kind of launches; as it is where there is one kind only."""
    launched = [function_name(one.entry) for one in candidate.plan.launches]
    if len(set(launched)) == len(launched):
        return candidate
    try:
        buffers = passable(contract, candidate.plan)
    except ContractError:
        return candidate
    for name, kernel in reversed(parse_kernels(candidate.source).items()):  # from the end: places before stay
        launches = tuple(dict.fromkeys(x for x in candidate.plan.launches if function_name(x.entry) == name))
        kinds = _kinds(launches, contract, buffers) if len(launches) > 1 else []
        if 1 < len(kinds) <= _MOST and kernel.span is not None:
            candidate = _copied(candidate, kernel, kinds[1:])
    return candidate


def _kinds(launches: Sequence[Launch], contract: Contract, buffers: Mapping[str, Argument]) -> list[tuple[Launch, ...]]:
    """The launches, those together of which one stands for all."""
    found = list[tuple[Launch, ...]]()
    for one in launches:
        for number, kind in enumerate(found):
            if alike((*kind, one), contract, buffers) is not None:
                found[number] = (*kind, one)
                break
        else:
            found.append((one,))
    return found


def _copied(candidate: Candidate, kernel: KernelForm, kinds: Sequence[tuple[Launch, ...]]) -> Candidate:
    data, (start, end) = candidate.source.encode(), kernel.span or (0, 0)
    text, taken = data[start:end].decode(), {t.text for t in tokenize(candidate.source)}
    copies, launches = list[str](), list(candidate.plan.launches)
    for kind in kinds:
        called = next(name for k in range(2, len(taken) + 3) if (name := f"{kernel.name}_{k}") not in taken)
        taken.add(called)
        copies.append("\n\n" + renamed(text, kernel.name, called))
        launches = [replace(x, entry=renamed(x.entry, kernel.name, called)) if x in kind else x for x in launches]
    source = (data[:end] + "".join(copies).encode() + data[end:]).decode()
    return replace(candidate, source=source, plan=replace(candidate.plan, launches=tuple(launches)))
