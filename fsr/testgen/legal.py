"""Can a plan be launched at every size that the contract allows? Asked of the sizes' ends, without running anything."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from fsr.contract.model import Contract, at_ends, dim3, repeats_of
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.hardware.gpus import Target
from fsr.hardware.limits import MAX_BLOCK, MAX_GRID, MAX_THREADS
from fsr.records import Candidate, Fault, FaultKind, Launch, Plan
from fsr.source.entry import function_name
from fsr.testgen.fitting import smallest
from fsr.testgen.numbers import constant

_BOUNDS = r"__launch_bounds__\s*\(\s*([^,()]+)[^()]*\)[^;{}()]*?\b"
_CLUSTER = r"__cluster_dims__\s*\(\s*([^()]+)\)[^;{}]*?\b"


def illegal(contract: Contract, candidate: Candidate, baseline: Plan, max_shared_bytes: int) -> Fault | None:
    """The first launch that CUDA would refuse at an end of the sizes' ranges where the baseline's can be made."""
    clustered = any(_cluster(launch.entry, candidate.source) != (1, 1, 1) for launch in candidate.plan.launches)
    for sizes in (*_ends(contract), *(_odd(contract) if clustered else ())):
        if any(_refusal(launch, sizes, max_shared_bytes) for launch in baseline.launches):
            continue
        for launch in candidate.plan.launches:
            why = _refusal(launch, sizes, max_shared_bytes)
            for known in () if why else at_ends(launch, sizes):
                why = why or _beyond_bounds(launch, known, candidate.source)
                why = why or _beside_clusters(launch, known, candidate.source)
            if why:
                where = ", ".join(f"{name}={value}" for name, value in sizes.items())
                return Fault(FaultKind.LAUNCH, f"{launch.entry} cannot be launched at {where}: {why}")
    return None


def outnumbers(contract: Contract, plan: Plan, target: Target) -> bool:
    """Whether some launch can have more blocks than the target holds at once, whatever registers and shared memory
    they take: then no block may wait for one that begins later."""
    for sizes, launch in itertools.product(_ends(contract), plan.launches):
        try:
            first = at_ends(launch, sizes)[0]
            blocks, threads = math.prod(dim3(launch.grid, first)), math.prod(dim3(launch.block, first))
        except ContractError:
            continue
        at_once = min(target.max_blocks_per_sm, target.max_threads_per_sm // max(threads, 1))
        if blocks > target.sm_count * at_once:
            return True
    return False


def _ends(contract: Contract) -> Iterator[dict[str, int]]:
    """All sizes at their largest, each alone at its largest, all at their smallest that is not 0."""
    least = smallest(contract)
    yield {s.name: s.maximum for s in contract.sizes}
    yield from (least | {s.name: s.maximum} for s in contract.sizes)
    yield least


def _odd(contract: Contract) -> Iterator[dict[str, int]]:
    """Each size at small odd numbers, the others as small as they may be."""
    least = smallest(contract)
    for size, value in itertools.product(contract.sizes, (1, 3, 5, 7, 1001)):
        if size.minimum <= value <= size.maximum:
            yield least | {size.name: value}


def _refusal(launch: Launch, sizes: Mapping[str, int], max_shared_bytes: int) -> str:
    try:
        repeats_of(launch, sizes)
        whys = (_refused_shape(launch, known, max_shared_bytes) for known in at_ends(launch, sizes))
        return next(filter(None, whys), "")
    except ContractError as fault:
        return fault.what


def _refused_shape(launch: Launch, sizes: Mapping[str, int], max_shared_bytes: int) -> str:
    grid, block = dim3(launch.grid, sizes), dim3(launch.block, sizes)
    shared = evaluate_int(launch.shared_bytes, sizes)
    for what, dims, limits in (("block", block, MAX_BLOCK), ("grid", grid, MAX_GRID)):
        if any(n > limit for n, limit in zip(dims, limits, strict=True)):
            return f"a {what} of {dims}; each of x, y, z is at most {limits}"
    if math.prod(block) > MAX_THREADS:
        return f"{math.prod(block)} threads a block, at most {MAX_THREADS}"
    if not 0 <= shared <= max_shared_bytes:
        return f"{shared} bytes of shared memory a block, at most {max_shared_bytes}"
    return ""


def _beyond_bounds(launch: Launch, sizes: Mapping[str, int], source: str) -> str:
    """Why a kernel that states __launch_bounds__ cannot be launched: more threads than it says."""
    threads = math.prod(dim3(launch.block, sizes))
    for most in _bounds(launch.entry, source):
        if threads > most:
            return f"{threads} threads a block, but it is compiled for at most {most} (__launch_bounds__)"
    return ""


def _beside_clusters(launch: Launch, sizes: Mapping[str, int], source: str) -> str:
    """Why a kernel that states __cluster_dims__ cannot be launched: a grid that clusters do not divide."""
    cluster, grid = _cluster(launch.entry, source), dim3(launch.grid, sizes)
    if math.prod(grid) and any(n % of for n, of in zip(grid, cluster, strict=True)):
        return f"a grid of {grid} is no multiple of its clusters of {cluster} (__cluster_dims__)"
    return ""


def _before(attribute: str, entry: str) -> str:
    """The pattern of an attribute that stands before the head of a kernel."""
    return attribute + re.escape(function_name(entry)) + r"\s*\("


@lru_cache(maxsize=8)
def _cluster(entry: str, source: str) -> tuple[int, int, int]:
    """The blocks of a cluster along each axis; 1 where the kernel states none, or not in numbers."""
    match = re.search(_before(_CLUSTER, entry), source)
    listed = [constant(part, source) for part in match[1].split(",")] if match else []
    x, y, z = ([n if n else 1 for n in listed] + [1, 1, 1])[:3]
    return x, y, z


@lru_cache(maxsize=8)
def _bounds(entry: str, source: str) -> tuple[int, ...]:
    """What the __launch_bounds__ of a kernel say; asked once for all sizes."""
    stated = itertools.islice(re.finditer(_before(_BOUNDS, entry), source), 4)
    numbers = (int(m[1]) if m[1].strip().isdecimal() else constant(m[1], source) for m in stated)
    return tuple(n for n in numbers if n is not None)
