"""Device functions that a structural rewrite brings along: packs of elements, reductions over a warp or a block.

They are written once per candidate, before its first kernel, under names that start with ``fsr_``; a candidate
that already holds one keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fsr.analysis.operators import OPERATORS
from fsr.transform.lane_sums import COMPENSATED_SUM, LINEAR_STEP, RUNNING_LINEAR, RUNNING_SUM

_PACK = """\
// WIDTH neighbouring elements, read or written in one access.
template <typename T, int WIDTH>
struct alignas(sizeof(T) * WIDTH) fsr_pack {
    T v[WIDTH];
};
"""

_ALIGNED = """\
// Whether an address is a multiple of BYTES.
template <int BYTES>
__device__ __forceinline__ bool fsr_aligned(const void *pointer)
{
    return reinterpret_cast<size_t>(pointer) % BYTES == 0;
}
"""

_WARP = """\
// {words} over the 32 lanes of a warp; every lane gets the result.
template <typename T>
__device__ __forceinline__ T fsr_warp_{name}(T value)
{{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {{
        const T a = value;
        const T b = __shfl_xor_sync(0xffffffffu, value, offset);
        value = {combine};
    }}
    return value;
}}
"""

_LANES = """\
// {words} over LANES neighbouring lanes of a warp, whatever its other lanes do; every one of them gets the result.
template <int LANES, typename T>
__device__ __forceinline__ T fsr_lanes_{name}(T value)
{{
    const unsigned together = ((1u << LANES) - 1u) << (threadIdx.x % 32 / LANES * LANES);
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {{
        const T a = value;
        const T b = __shfl_xor_sync(together, value, offset);
        value = {combine};
    }}
    return value;
}}
"""

_LANES_BEST = """\
// The lane, of LANES neighbouring ones, that holds the {words}: of equal ones that of the {which} turn.
template <int LANES, typename T, typename I>
__device__ __forceinline__ int fsr_lanes_{which}_{name}(T value, I turn)
{{
    const unsigned together = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(together, value, offset);
        const I other_turn = __shfl_xor_sync(together, turn, offset);
        const int other_lane = __shfl_xor_sync(together, lane, offset);
        const bool before = other_turn {sooner} turn || (other_turn == turn && other_lane < lane);
        if (other {better} value || (other == value && before)) {{
            value = other;
            turn = other_turn;
            lane = other_lane;
        }}
    }}
    return lane;
}}
"""

_LANES_BEST_OF_TWO = """\
// The lane, of LANES neighbouring ones, that holds the {words}, of equal ones the {then} second: of equal ones of these
// that of the {which} turn.
template <int LANES, typename T, typename S, typename I>
__device__ __forceinline__ int fsr_lanes_{which}_{name}(T value, S second, I turn)
{{
    const unsigned together = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(together, value, offset);
        const S other_second = __shfl_xor_sync(together, second, offset);
        const I other_turn = __shfl_xor_sync(together, turn, offset);
        const int other_lane = __shfl_xor_sync(together, lane, offset);
        const bool before = other_turn {sooner} turn || (other_turn == turn && other_lane < lane);
        const bool better = other_second {second} second || (other_second == second && before);
        if (other {better} value || (other == value && better)) {{
            value = other;
            second = other_second;
            turn = other_turn;
            lane = other_lane;
        }}
    }}
    return lane;
}}
"""

_BLOCK = """\
// {words} over a block of THREADS threads; every thread gets the result.
template <int THREADS, typename T>
__device__ __forceinline__ T fsr_block_{name}(T value)
{{
    __shared__ T partial[THREADS / 32];
    value = fsr_warp_{name}(value);
    if (THREADS > 32) {{
        __syncthreads();  // the results of an earlier call have been read
        if (threadIdx.x % 32 == 0) {{
            partial[threadIdx.x / 32] = value;
        }}
        __syncthreads();
        value = partial[0];
#pragma unroll
        for (int warp = 1; warp < THREADS / 32; warp += 1) {{
            const T a = value;
            const T b = partial[warp];
            value = {combine};
        }}
    }}
    return value;
}}
"""


_WARP_AT = """\
// {words} over the 32 lanes of a warp and the first of its places; every lane gets both.
template <typename T, typename I>
__device__ __forceinline__ void fsr_warp_{name}_at(T &value, I &at)
{{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, offset);
        const I place = __shfl_xor_sync(0xffffffffu, at, offset);
        if (other {better} value || (other == value && place < at)) {{
            value = other;
            at = place;
        }}
    }}
}}
"""

_BLOCK_AT = """\
// {words} over a block of THREADS threads and the first of its places; every thread gets both.
template <int THREADS, typename T, typename I>
__device__ __forceinline__ void fsr_block_{name}_at(T &value, I &at)
{{
    __shared__ T values[THREADS / 32];
    __shared__ I places[THREADS / 32];
    fsr_warp_{name}_at(value, at);
    if (THREADS > 32) {{
        __syncthreads();  // the results of an earlier call have been read
        if (threadIdx.x % 32 == 0) {{
            values[threadIdx.x / 32] = value;
            places[threadIdx.x / 32] = at;
        }}
        __syncthreads();
        value = values[0];
        at = places[0];
#pragma unroll
        for (int warp = 1; warp < THREADS / 32; warp += 1) {{
            if (values[warp] {better} value || (values[warp] == value && places[warp] < at)) {{
                value = values[warp];
                at = places[warp];
            }}
        }}
    }}
}}
"""

_ADD_RUNS = """\
// Adds each lane's value to out[place] where place is not negative; neighbours of one place are added up first. All
// lanes of a warp take part.
template <typename T>
__device__ __forceinline__ void fsr_add_runs(T *out, long long place, T value)
{
    const int lane = threadIdx.x % 32;
    const long long before = __shfl_up_sync(0xffffffffu, place, 1);
    const bool first = lane == 0 || before != place;
    const unsigned later = __ballot_sync(0xffffffffu, first) & ~((2u << lane) - 1u);
    const int end = later ? __ffs(later) - 1 : 32;  // where the next run begins
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const T other = __shfl_down_sync(0xffffffffu, value, offset);
        if (lane + offset < end) {
            value += other;
        }
    }
    if (first && place >= 0) {
        atomicAdd(&out[place], value);
    }
}
"""

_NEIGHBOURS = """\
// COUNT neighbouring elements: in one access where ``whole`` says that the address allows it, else LEAST in each.
template <int COUNT, int LEAST, typename T>
__device__ __forceinline__ fsr_pack<T, COUNT> fsr_neighbours(const T *from, bool whole)
{
    if (whole) return *reinterpret_cast<const fsr_pack<T, COUNT> *>(from);
    fsr_pack<T, COUNT> all;
#pragma unroll
    for (int n = 0; n < COUNT; n += LEAST) {
        const fsr_pack<T, LEAST> part = *reinterpret_cast<const fsr_pack<T, LEAST> *>(from + n);
#pragma unroll
        for (int m = 0; m < LEAST; m++) {
            all.v[n + m] = part.v[m];
        }
    }
    return all;
}
"""

_SLICES = """\
// {words} the slices of a block's threads, ``length`` elements each, which are ``stride`` apart in shared memory:
// ``count`` neighbours in global memory, PACK at a time where addresses allow it. All threads of the block take part.
template <int PACK, typename T>
__device__ __forceinline__ void fsr_{name}_slices({arguments}, int count, int length, int stride)
{{
    const int threads = blockDim.x * blockDim.y * blockDim.z;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int done = 0;
    if (PACK > 1 && (sizeof(T) * PACK == 4 ? fsr_aligned<4>(memory) : fsr_aligned<16>(memory))) {{
        for (int at = thread * PACK; at + PACK <= count; at += threads * PACK) {{
            const int place = at / length * stride + at % length;
            const fsr_pack<T, PACK> pack = *reinterpret_cast<const fsr_pack<T, PACK> *>(&{origin});
            *reinterpret_cast<fsr_pack<T, PACK> *>(&{to}) = pack;
        }}
        done = count - count % PACK;
    }}
    for (int at = done + thread; at < count; at += threads) {{
        const int place = at / length * stride + at % length;
        {to} = {origin};
    }}
}}
"""
_LOAD_SLICES = _SLICES.format(
    words="Loads", name="load", arguments="T *slices, const T *memory", to="slices[place]", origin="memory[at]"
)
_STORE_SLICES = _SLICES.format(
    words="Stores", name="store", arguments="T *memory, const T *slices", to="memory[at]", origin="slices[place]"
)

_ROWS = """\
// {words} the rows of a warp's lanes that are in ``lanes``, ``count`` elements each, at most COLUMNS; ``row``: a lane's
// own in shared memory, STRIDE behind the one of the lane before; ``place``: where its first element is in ``memory``,
// behind which, or before which, the others are. Lanes go along the rows, neighbours at neighbouring elements;
// they have waited for one another.
template <int COLUMNS, int STRIDE, int DOWN, typename T, typename PLACE>
__device__ __forceinline__ void fsr_{name}_rows(unsigned lanes, {arguments}, PLACE place, int count)
{{
    const int lane = ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32;
    {const}T *const rows = row - lane * STRIDE;
    if (lanes == 0xffffffffu) {{
        const bool whole = __all_sync(lanes, count == COLUMNS);
#pragma unroll 8
        for (int step = 0; step < COLUMNS; ++step) {{
            const int of = (step * 32 + lane) / COLUMNS, column = (step * 32 + lane) % COLUMNS;
            const PLACE first = __shfl_sync(lanes, place, of);
            if (whole || column < __shfl_sync(lanes, count, of)) {{
                {to} = {origin};
            }}
        }}
    }} else {{
        const int many = __popc(lanes), mine = __popc(lanes & ((1u << lane) - 1u));
        for (int of = 0; of < 32; ++of) {{
            if ((lanes >> of & 1u) == 0) {{
                continue;
            }}
            const PLACE first = __shfl_sync(lanes, place, of);
            const int until = __shfl_sync(lanes, count, of);
            for (int column = mine; column < until; column += many) {{
                {to} = {origin};
            }}
        }}
    }}
}}
"""
_LOAD_ROWS = _ROWS.format(
    words="Loads", name="load", const="", arguments="T *row, const T *memory",
    to="rows[of * STRIDE + column]", origin="memory[first + (DOWN ? -column : column)]",
)  # fmt: skip
_STORE_ROWS = _ROWS.format(
    words="Stores", name="store", const="const ", arguments="const T *row, T *memory",
    to="memory[first + (DOWN ? -column : column)]", origin="rows[of * STRIDE + column]",
)  # fmt: skip

_WHOLE = {
    "fsr_pack": _PACK, "fsr_aligned": _ALIGNED, "fsr_add_runs": _ADD_RUNS, "fsr_neighbours": _NEIGHBOURS,
    "fsr_lanes_running_sum": RUNNING_SUM, "fsr_lanes_compensated_sum": COMPENSATED_SUM,
    "fsr_lanes_running_linear": RUNNING_LINEAR, "fsr_linear_step": LINEAR_STEP,
    "fsr_load_slices": _LOAD_SLICES, "fsr_store_slices": _STORE_SLICES,
    "fsr_load_rows": _LOAD_ROWS, "fsr_store_rows": _STORE_ROWS,
}  # fmt: skip
_BETTER = {"greatest": ">", "least": "<"}
_SOONER = {"first": "<", "last": ">"}


def helper_text(name: str) -> str:
    """The definition of one helper: 'fsr_pack', 'fsr_aligned', 'fsr_add_runs', 'fsr_neighbours' (which needs
    'fsr_pack'), 'fsr_load_slices', 'fsr_store_slices' (which need 'fsr_pack' and 'fsr_aligned'), 'fsr_load_rows',
    'fsr_store_rows', 'fsr_lanes_running_sum', 'fsr_lanes_compensated_sum', 'fsr_lanes_running_linear',
    'fsr_linear_step',
    'fsr_lanes_<operator>', 'fsr_warp_<operator>', 'fsr_block_<operator>'; with '_at' behind 'greatest' and 'least', of
    a warp or a block, those that keep the place too, and of lanes, with 'first_' or 'last_' before these, those that
    tell which lane has it ('first_least_greatest': by a second value where the first are alike).

    Raises KeyError for another name.
    """
    if name in _WHOLE:
        return _WHOLE[name]
    _, level, operator = name.split("_", 2)
    if level == "lanes" and operator.startswith(("first_", "last_")):
        which, plain, *then = operator.split("_")
        words, sooner, name = OPERATORS[plain].words.lower(), _SOONER[which], "_".join([plain, *then])
        if then:
            return _LANES_BEST_OF_TWO.format(
                which=which, name=name, words=words, then=then[0], better=_BETTER[plain], second=_BETTER[then[0]],
                sooner=sooner,
            )  # fmt: skip
        return _LANES_BEST.format(which=which, name=plain, words=words, better=_BETTER[plain], sooner=sooner)
    if operator.endswith("_at"):
        plain = operator.removesuffix("_at")
        words, better = OPERATORS[plain].words, _BETTER[plain]
        return {"warp": _WARP_AT, "block": _BLOCK_AT}[level].format(name=plain, words=words, better=better)
    op = OPERATORS[operator]
    template = {"lanes": _LANES, "warp": _WARP, "block": _BLOCK}[level]
    return template.format(name=op.name, words=op.words, combine=op.combine)


def missing_helpers(source: str, names: Iterable[str]) -> str:
    """The definitions of the named helpers, and of those that they call, which ``source`` does not hold yet."""
    wanted: list[str] = []
    for name in sorted(names):
        if name.startswith("fsr_block_"):
            wanted.append("fsr_warp_" + name.removeprefix("fsr_block_"))
        if name == "fsr_neighbours":
            wanted.append("fsr_pack")
        if name.endswith("_slices"):
            wanted += ["fsr_pack", "fsr_aligned"]
        wanted.append(name)
    return "\n".join(helper_text(n) for n in dict.fromkeys(wanted) if not defines(source, n))


def defines(source: str, name: str) -> bool:
    """Whether the text already holds the helper of that name."""
    return re.search(rf"(struct\s.*\b|\bT |\bbool |\bvoid |\bint |> ){re.escape(name)}\b", source) is not None
