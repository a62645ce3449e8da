"""Which of two kernels makes a part is told by a look at the data: one that holds within a range, one that always does.

Two terms of tf32 hold a float of any size but the smallest: below 2^-112 they keep fewer bits than it has, an infinite
one leaves no number, and what a tensor core adds below the smallest normal number is told nowhere. So a first launch
looks at every element of the factors; where one is neither nought nor of ordinary size, the kernel of split products
leaves at once, and the ordinary one, which otherwise leaves at once, makes the result. Products of factors of ordinary
size, and the products of their terms, are normal numbers. The look takes what reading the factors takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fsr.computation.expression import Load
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.scene import Scene

_THREADS, _BLOCKS = 256, 8  # a block, and of them a multiprocessor, at most
_SHARE = 4096  # elements of a block at least: four packs of a thread
_PACK = "fsr_pack<float, 4>"
_BEYOND = """\
// Whether a float is neither nought nor from 2^-62 to 2^60.
__device__ __forceinline__ bool fsr_beyond(float x)
{
    const unsigned magnitude = __float_as_uint(x) << 1;
    return magnitude != 0 && magnitude - (65u << 24) >= 122u << 24;
}

"""


def guarded(scene: Scene, factors: Iterable[Load], split: Written, others: Sequence[Written]) -> list[Written]:
    """The launches of a part: the look at the factors, ``others`` where one is not of ordinary size, else ``split``,
    last: the host device executes all of a launch that another follows."""
    buffers = list(dict.fromkeys(load.buffer for load in factors))
    flag = Scratch("beyond", "int32", "1", zeroed=True)
    count = " + ".join(" * ".join(f"({x})" for x in scene.shape(b)) or "1" for b in buffers)
    grid = f"min({_BLOCKS * scene.gpu.sm_count}, ceil_div({count}, {_SHARE}))", "1", "1"
    look = Written(
        scene, _lines(scene, buffers), grid, (str(_THREADS), "1", "1"), _THREADS, "look", scratch=(flag,),
        before=(_BEYOND,),
    )  # fmt: skip
    return [look, *(_unless("$beyond[0] == 0", x, flag) for x in others), _unless("$beyond[0] != 0", split, flag)]


def _unless(test: str, kernel: Written, flag: Scratch) -> Written:
    lines = [f"if ({test}) return;", *kernel.lines]
    return replace(kernel, lines=lines, scratch=(*kernel.scratch, flag))


def _lines(scene: Scene, buffers: Sequence[str]) -> list[str]:
    scene.helpers.update(("fsr_pack", "fsr_aligned"))
    lines = ["bool $seen = false;"]
    for buffer in buffers:
        name = scene.names.names[buffer]
        count = " * ".join(["1LL", *(scene.size(x) for x in scene.shape(buffer))])
        step = f"$at += {_THREADS}LL * gridDim.x"
        first = f"{_THREADS}LL * blockIdx.x + threadIdx.x"
        lines += ["{", *indent([
            f"const long long $count = {count}, $packs = fsr_aligned<16>({name}) ? $count / 4 : 0;",
            "#pragma unroll 4",
            f"for (long long $at = {first}; $at < $packs; {step}) {{",
            f"    const {_PACK} $four = reinterpret_cast<const {_PACK} *>({name})[$at];",
            *indent(unrolled("$lane", 4, ["$seen |= fsr_beyond($four.v[$lane]);"])),
            "}",
            f"for (long long $at = 4 * $packs + {first}; $at < $count; {step}) {{",
            f"    $seen |= fsr_beyond({name}[$at]);",
            "}",
        ]), "}"]  # fmt: skip
    return [*lines, "if (__syncthreads_or($seen) && threadIdx.x == 0) atomicOr($beyond, 1);"]
