"""pack-scatters: neighbouring elements that are added where data tells, by one atomic operation of 8 or 16 bytes.

From compute capability 9.0 on, atomicAdd takes a float2 or a float4 in global memory, each part atomic for itself (CUDA
C++ Programming Guide, Atomic Functions). Threads lie along what is contiguous, as in :mod:`.elements`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fsr.computation.computation import Statement
from fsr.computation.expression import Expr, Load, names_in
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import ATOMIC_PACKS_FROM
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.elements import a_pack_each, packs_of_rows, stores, taken_apart
from fsr.transform.computed.packs import Packs
from fsr.transform.computed.parts import name_of, value_of
from fsr.transform.computed.scene import Scene
from fsr.transform.plain.c_text import NotPlain
from fsr.transform.plain.scatter import atomic

Params = Mapping[str, int | str]
_WIDTHS = (4, 2)  # floats that one operation adds


def _in_packs(scene: Scene, o: Load) -> bool:
    """Whether what one output adds to goes along the last dimension, and its type has atomics of several."""
    last = scene.part.domain[-1][0]
    lies = name_of(o.indices[-1]) == last and not any(last in names_in(i) for i in o.indices[:-1])
    return lies and o.dtype == "float32" and scene.gpu.capability >= ATOMIC_PACKS_FROM


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    if not scene.part.domain or not any(_in_packs(scene, o) for o in stores(scene)):
        return
    length, gain = scene.timed(scene.part.domain[-1][1]), 1.7
    for pack in (w for w in _WIDTHS if not length % w):
        for packs in (1, 2):
            for threads in (256, 128):
                yield {"pack": pack, "packs": packs, "threads": threads}, gain
                gain *= 0.97


def one_by_one(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """An atomic operation an element: for parts beside those that something else is done for."""
    yield from configurations(scene)
    if scene.part.domain:
        yield {"pack": 1, "packs": 1, "threads": 256}, 1.0


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    if not scene.part.domain:
        raise NotPlain("a single element")
    scene = scene.narrowed()
    pack, packs, threads = (int(params[k]) for k in ("pack", "packs", "threads"))
    singly = _elements(scene, pack * packs, threads)
    if pack == 1:
        lines, (_, grid) = singly, packs_of_rows(scene, 1, threads * packs)
    else:
        test, whole = _whole(scene, pack)
        lines, grid = a_pack_each(scene, pack, threads, whole, packs=packs)
        lines = [f"if ({test}) {{", *indent(lines), "} else {", *indent(singly), "}"]
    return [Written(scene, lines, (grid, "1", "1"), (str(threads), "1", "1"), threads, "added")]


def _elements(scene: Scene, each: int, threads: int) -> list[str]:
    """So many elements a thread, those of neighbouring threads beside each other."""
    domain = scene.part.domain
    count = " * ".join(f"({x})" for _, x in domain)
    number = "unsigned" if scene.most(count) + each * threads < 2**31 else "long long"
    total = " * ".join(f"({number}){scene.size(x)}" for _, x in domain)
    singly = [line for n, s in enumerate(scene.part.outputs) for line in _added(scene, n, s, {})]
    lines = [
        f"const {number} $at = ({number})blockIdx.x * {each * threads} + $turn * {threads} + threadIdx.x;",
        f"if ($at < {total}) {{", *indent([*taken_apart(scene, domain, "$at", number), *singly]), "}",
    ]  # fmt: skip
    return unrolled("$turn", each, lines)


def _whole(scene: Scene, pack: int) -> tuple[str, list[str]]:
    """When all packs are whole, and what is done with one."""
    last, length = scene.part.domain[-1]
    exprs = [e for s in scene.part.outputs for e in (value_of(s), *s.place)]
    reads = Packs.of(scene, exprs, last, pack)
    packed = [o for o in stores(scene) if _in_packs(scene, o)]
    tests = dict.fromkeys((f"{scene.size(length)} % {pack} == 0", *reads.aligned(packed).split(" && ")))
    return " && ".join(t for t in tests if t != "true"), _added_whole(scene, reads, pack)


def _added_whole(scene: Scene, reads: Packs, pack: int) -> list[str]:
    held = reads.held("$lane")
    begun, lanes, ended = list[str](), list[str](), list[str]()
    for n, (s, o) in enumerate(zip(scene.part.outputs, stores(scene), strict=True)):
        if not _in_packs(scene, o):
            lanes += _added(scene, n, s, held)
            continue
        name = f"$added{n + 1}"
        begun.append(f"{BY_DTYPE[o.dtype].spelling} {name}[{pack}];")
        lanes.append(f"{name}[$lane] = {scene.text(value_of(s), held)};")
        parts = ", ".join(f"{name}[{k}]" for k in range(pack))
        address = f"reinterpret_cast<float{pack} *>(&{reads.first(o)})"
        ended.append(f"{atomic(s, o.dtype)}({address}, make_float{pack}({parts}));")
    return [*reads.fetch(), *begun, *reads.lanes(lanes), *ended]


def _added(scene: Scene, n: int, s: Statement, held: Mapping[Expr, str]) -> list[str]:
    o = stores(scene)[n]
    return [f"{atomic(s, o.dtype)}(&{scene.element(o, held)}, {scene.text(value_of(s), held)});"]
