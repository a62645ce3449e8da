"""Where an action works: one launch of a candidate's plan with its kernel as a domain, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations

from fsr.analysis.aliasing import may_alias
from fsr.analysis.domain import Domain, domain, flattened
from fsr.analysis.functions import thread_aware
from fsr.analysis.macros import constants, expanded
from fsr.contract.model import Contract
from fsr.records import Candidate, Launch
from fsr.source.emit import emit_kernel
from fsr.source.entry import bare_name, function_name
from fsr.source.form import KernelForm, OpaqueStmt
from fsr.source.names import settle, words
from fsr.source.tokens import skeleton
from fsr.source.walk import identifiers
from fsr.transform.placement import Placed, placed
from fsr.transform.protocol import Subject


@dataclass(frozen=True, slots=True)
class Site:
    """One launch (by position) whose kernel is launched nowhere else in the plan. ``region``: 'kernel', or
    'kernel:<name>' in a plan of several launches. ``unaliased``: pointer parameters that share memory with no other,
    by the contract's word."""

    at: int
    launch: Launch
    form: KernelForm
    placed: Placed
    region: str
    unaliased: frozenset[str] = frozenset()

    @property
    def domain(self) -> Domain:
        """The kernel over points, every axis bounded."""
        return self.placed.domain


def sites(subject: Subject) -> Iterator[Site]:
    """Every launch of the plan whose kernel is a map over points."""
    launches = subject.candidate.plan.launches
    entries = [bare_name(launch.entry) for launch in launches]
    for at, launch in enumerate(launches):
        form = subject.kernels.get(entries[at]) or subject.kernels.get(function_name(entries[at]))
        if form is None or form.span is None or entries.count(entries[at]) > 1 or len(launch.args) != len(form.params):
            continue
        region = "kernel" if len(launches) == 1 else f"kernel:{form.name}"
        ready = _placed(subject.candidate.source, form, launch, subject.contract)
        if ready is not None:
            yield Site(at, launch, form, ready, region, _unaliased(form, launch, subject.contract))


@lru_cache(maxsize=256)
def _placed(source: str, form: KernelForm, launch: Launch, contract: Contract) -> Placed | None:
    written_out = expanded(form, source)
    if identifiers(written_out.body) & (thread_aware(source) - {form.name}):
        return None
    found = domain(written_out, launch, constants(source, form, launch.entry))
    if found is None:
        return None
    return placed(flattened(found) or found, contract)


def _unaliased(form: KernelForm, launch: Launch, contract: Contract) -> frozenset[str]:
    given = {p.name: str(a) for p, a in zip(form.params, launch.args, strict=True) if p.is_pointer}
    pairs = [(n, m) for n, m in permutations(given, 2) if may_alias(given[n], given[m], contract.aliasing)]
    return frozenset(given) - {name for name, _ in pairs}


def rebuilt(
    candidate: Candidate, site: Site, body: str, launch: Launch, action: str, *,
    threads: int | None = None, min_blocks: int = 1, before: str = "",
) -> Candidate:  # fmt: skip
    """The candidate with the site's kernel body replaced by ``body`` (``$names`` are settled) and its launch by
    ``launch``. ``threads``: the launch bound to declare; ``before``: declarations to stand before the kernel."""
    taken = words(skeleton(candidate.source))
    text = settle(body, taken).strip()
    bounds = () if threads is None else (str(threads),) if min_blocks <= 1 else (str(threads), str(min_blocks))
    params = tuple(replace(p, restrict=p.restrict or p.name in site.unaliased) for p in site.placed.params)
    form = replace(site.form, body=(OpaqueStmt(text),), params=params, launch_bounds=bounds)
    kernel = before + emit_kernel(form).rstrip("\n")
    data = candidate.source.encode()
    start, end = site.form.span or (0, 0)
    source = (data[:start] + kernel.encode() + data[end:]).decode()
    launches = list(candidate.plan.launches)
    launches[site.at] = launch
    plan = replace(candidate.plan, launches=tuple(launches))
    return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, action))
