"""shuffle-trees: every bit of a block's tree stays, however it is written; no move where more of it is used."""

from __future__ import annotations

import pytest

from fsr.search.proposal import Rules
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.trees.action import ShuffleTrees

SIZES = [{"n": n} for n in (1, 31, 255, 256, 257, 1000)]


def kernel(body: str, *, block: str = "256", before: str = "", entry: str = "k", shared: str = "0") -> str:
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// n = {{min = 1, max = 65536, timed = 16384}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "out", shape = ["ceil_div(n, 256)"]}}
// at = {{role = "out", shape = ["ceil_div(n, 256)"], dtype = "int32"}}
// N = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 256)"
// block = {block}
// shared_bytes = {shared}
// ///
{before}
__global__ void k(const float *x, float *y, int *at, int N)
{{
{body}
}}
"""


LOAD = """
    __shared__ float s[256];
    const int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    s[tid] = i < N ? x[i] * 0.1f : 0.0f;
    __syncthreads();
"""
PLAIN = "for (int w = blockDim.x / 2; w > 0; w >>= 1) { if (tid < w) s[tid] += s[tid + w]; __syncthreads(); }"
STORE = "if (tid == 0) { y[blockIdx.x] = s[0]; at[blockIdx.x] = blockIdx.x; }"
PAIRS = """
    __shared__ float s[256];
    __shared__ int place[256];
    const int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    s[tid] = i < N ? x[i] : -100.0f;
    place[tid] = i;
    __syncthreads();
"""
STORE_PAIR = "if (tid == 0) { y[blockIdx.x] = s[0]; at[blockIdx.x] = place[0]; }"
UPDATE = """
__device__ void update(float *dists, int *dists_i, int idx1, int idx2)
{
    const float v1 = dists[idx1], v2 = dists[idx2];
    const int i1 = dists_i[idx1], i2 = dists_i[idx2];
    dists[idx1] = max(v1, v2);
    dists_i[idx1] = v2 > v1 ? i2 : i1;
}
"""
LAST_WARP = """
__device__ void last_warp(volatile float *v, int t)
{
    v[t] += v[t + 32]; v[t] += v[t + 16]; v[t] += v[t + 8]; v[t] += v[t + 4]; v[t] += v[t + 2]; v[t] += v[t + 1];
}
"""
TEMPLATE = """
template <unsigned int B>
__device__ void last_warp(volatile float *v, unsigned int t)
{
    if (B >= 64) v[t] += v[t + 32];
    if (B >= 32) v[t] += v[t + 16];
    if (B >= 16) v[t] += v[t + 8];
    if (B >= 8) v[t] += v[t + 4];
    if (B >= 4) v[t] += v[t + 2];
    if (B >= 2) v[t] += v[t + 1];
}
"""
UPPER = "for (int w = 128; w > 32; w >>= 1) { if (tid < w) s[tid] += s[tid + w]; __syncthreads(); }"
LEVELS = "".join(
    f"if (BLOCK >= {2 * w}) {{ if (tid < {w}) update(s, place, tid, tid + {w}); __syncthreads(); }}\n"
    for w in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
)
STEPS = """
    int old = 0;
    for (int step = 0; step < 5; step++) {
        s[tid] = i < N ? x[i] + (old + step) % 3 : -100.0f;
        place[tid] = i;
        __syncthreads();
        for (int w = 128; w > 0; w /= 2) {
            if (tid < w && s[tid + w] > s[tid]) { s[tid] = s[tid + w]; place[tid] = place[tid + w]; }
            __syncthreads();
        }
        old = place[0];
        if (tid == 0) { y[blockIdx.x] = s[0]; at[blockIdx.x] = old; }
        __syncthreads();
    }
"""
TWO = (
    PLAIN
    + """
    float mean = s[0] / 256;
    __syncthreads();
    s[tid] = i < N ? (x[i] - mean) * (x[i] - mean) : 0.0f;
    __syncthreads();
"""
    + PLAIN
)
FLAT = LOAD.replace("tid = threadIdx.x", "tid = threadIdx.y * blockDim.x + threadIdx.x")

WHILE = "int u = blockDim.x / 2; while (u != 0) { if (tid < u) s[tid] = s[tid + u] + s[tid]; __syncthreads(); u /= 2; }"
FIRST = """
    for (int w = 128; w >= 1; w = w >> 1) {
        __syncthreads();
        if (tid < w) s[tid] = fmaxf(s[tid], s[tid + w]);
    }
"""
NEIGHBOURS = """
    for (int w = 1; w < blockDim.x; w *= 2) {
        if (tid % (2 * w) == 0) s[tid] += s[tid + w];
        __syncthreads();
    }
"""
STRIDES = """
    for (int w = 1; w < 256; w <<= 1) {
        int e = 2 * w * tid;
        if (e < 256) { s[e] += s[e + w]; }
        __syncthreads();
    }
"""
VOLATILE = "".join(f"v[tid] += v[tid + {w}]; " for w in (32, 16, 8, 4, 2, 1))
SYNCWARP = "if (tid < 32) { for (int w = 32; w > 0; w /= 2) { s[tid] += s[tid + w]; __syncwarp(); } }"
BEST = """
    for (int w = 128; w > 0; w >>= 1) {
        if (tid < w) {
            if (s[tid] < s[tid + w]) { s[tid] = s[tid + w]; place[tid] = place[tid + w]; }
        }
        __syncthreads();
    }
"""
LEAST = PLAIN.replace("s[tid] += s[tid + w];", "{ float a = s[tid], b = s[tid + w]; s[tid] = a < b ? a : b; }")
GREATER = PLAIN.replace("s[tid] += s[tid + w]", "s[tid] = GREATER(s[tid], s[tid + w])")
FOUR = """
    __shared__ float s[1024];
    const int tid = threadIdx.x;
    for (int j = tid; j < 1024; j += 256) s[j] = blockIdx.x * 256 + j < N ? x[blockIdx.x * 256 + j] : 0.0f;
    __syncthreads();
    if (tid < 256) { s[tid] += s[tid + 512]; s[tid + 256] += s[tid + 768]; }
    __syncthreads();
    if (tid < 256) s[tid] += s[tid + 256];
    __syncthreads();
"""
OF_TYPE = kernel((LOAD + PLAIN + STORE).replace("float", "T").replace("blockDim.x / 2", "B / 2"), entry="k<float, 256>")
MACRO = "#define GREATER(a, b) ((a) > (b) ? (a) : (b))"
DYNAMIC = LOAD.replace("__shared__ float s[256]", "extern __shared__ float s[]")

RESULTS = """
__device__ __forceinline__ float block_sum(float value, float *smem)
{
    int t = threadIdx.x;
    smem[t] = value;
    __syncthreads();
    for (int w = blockDim.x / 2; w > 0; w >>= 1) {
        if (t < w) smem[t] += smem[t + w];
        __syncthreads();
    }
    float result = smem[0];
    __syncthreads();
    return result;
}
"""
OF_FUNCTIONS = """
    __shared__ float s[256];
    const int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    float v = i < N ? x[i] : 0.0f;
    float mean = block_sum(v, s) / 256.0f;
    v -= mean;
    float variance = block_sum(v * v, s) / 256.0f;
    if (tid == 0) { y[blockIdx.x] = mean + variance; at[blockIdx.x] = 0; }
"""

CUT = """
    extern __shared__ float memory[];
    float *s = memory;
    int *place = (int *)&memory[256];
    const int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    s[tid] = i < N ? x[i] : -100.0f;
    place[tid] = i;
    __syncthreads();
"""

TREE = """
__device__ void tree(float *v, int t)
{
    for (int w = 128; w > 0; w >>= 1) {
        if (t < w) v[t] += v[t + w];
        __syncthreads();
    }
}
"""

GROUP = "auto block = cooperative_groups::this_thread_block();" + LOAD + PLAIN + STORE

SHUFFLES = """
    if (tid < 32) {
        float v = s[tid] + s[tid + 32];
        for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
        if (tid == 0) { y[blockIdx.x] = v; at[blockIdx.x] = 1; }
    }
"""

# A register goes along with the element: at once, in two statements, and with a warp's end of either kind.
ALONG = LOAD.replace("s[tid] = i < N ? x[i] * 0.1f : 0.0f;", "float acc = i < N ? x[i] * 0.1f : 0.0f; s[tid] = acc;")
AT_ONCE = PLAIN.replace("s[tid] += s[tid + w]", "s[tid] = acc = acc + s[tid + w]")
IN_TWO = PLAIN.replace("s[tid] += s[tid + w];", "{ acc += s[tid + w]; s[tid] = acc; }")
STORE_ALONG = "if (tid == 0) { y[blockIdx.x] = acc; at[blockIdx.x] = 0; }"
THEN_SHUFFLES = """
    if (tid < 32) {
        acc += s[tid + 32];
        for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
        if (tid == 0) { y[blockIdx.x] = acc; at[blockIdx.x] = 1; }
    }
"""
ALONG_BEST = """
    __shared__ float s[256];
    __shared__ int place[256];
    const unsigned tid = threadIdx.x;
    const long i = blockIdx.x * 256 + tid;
    float best = i < N ? x[i] : -100.0f;
    int where = i;
    s[tid] = best;
    place[tid] = where;
    __syncthreads();
    for (unsigned w = 128; w > 0; w /= 2) {
        if (tid < w && s[tid + w] > best) { s[tid] = best = s[tid + w]; place[tid] = where = place[tid + w]; }
        __syncthreads();
    }
    if (tid == 0) { y[blockIdx.x] = best; at[blockIdx.x] = where; }
"""
ALONG_IN_FUNCTION = (
    "__device__ void along(float *s, unsigned tid) { __syncthreads(); float acc = s[tid];" + AT_ONCE + "}"
)
ALONG_LAST = (
    "if (tid < 32) { volatile float *v = s; "
    + "".join(f"if (blockDim.x >= {2 * w}) v[tid] = acc = acc + v[tid + {w}]; " for w in (32, 16, 8, 4, 2, 1))
    + "}"
)
AT_ONCE_BOTH = "s[tid] = best = s[tid + w]; place[tid] = where = place[tid + w];"
LATER_BOTH = "best = s[tid + w]; where = place[tid + w]; s[tid] = best; place[tid] = where;"

QUOTIENT = """
    __shared__ float s[256];
    const unsigned tid = threadIdx.x, of_launch = blockIdx.x * blockDim.x + tid, row = of_launch / 256u;
    if (row >= (N + 255u) / 256u) return;
    float all = 0;
    for (unsigned turn = 0; turn <= row % 3u; turn++) {
      s[tid] = of_launch < N ? x[of_launch] * turn : 0.0f;
      __syncthreads();
      PLAIN
      if (tid == 0) all += s[0];
      __syncthreads();
    }
    if (tid == 0) { y[row] = all; at[row] = row; }
""".replace("PLAIN", PLAIN)

SIGNED = (
    QUOTIENT.replace("const unsigned", "const int")
    .replace("256u", "256")
    .replace("float all = 0;", "float all = of_launch / 256 - 1 < 0 ? 3.0f : 0.0f;")
)

TREES = {
    "rows told by a quotient": kernel(QUOTIENT),
    "rows that have a sign": kernel(SIGNED),
    "a register along": kernel(ALONG + AT_ONCE + STORE),
    "a register along, given out": kernel(ALONG + IN_TWO + STORE_ALONG),
    "a register along, then shuffles": kernel(ALONG + AT_ONCE.replace("w > 0", "w > 32") + THEN_SHUFFLES),
    "a register along, then shuffles, then given out": kernel(
        ALONG + AT_ONCE.replace("w > 0", "w > 32") + THEN_SHUFFLES.replace("if (tid == 0)", "} if (tid == 0) {")
    ),
    "a register read from the element": kernel(LOAD + "along(s, tid);" + STORE, before=ALONG_IN_FUNCTION),
    "a register along a last warp": kernel(ALONG + AT_ONCE.replace("w > 0", "w > 32") + ALONG_LAST + STORE),
    "a register along, value and place": kernel(ALONG_BEST),
    "a register along, both, then stored": kernel(ALONG_BEST.replace(AT_ONCE_BOTH, LATER_BOTH)),
    "shuffles already": kernel(LOAD + UPPER + SHUFFLES),
    "shuffles of a warp's": kernel(LOAD + PLAIN.replace("w > 0", "w >= 32") + SHUFFLES.replace(" + s[tid + 32]", "")),
    "a group's barriers": kernel(
        GROUP.replace("__syncthreads()", "block.sync()"), before="#include <cooperative_groups.h>"
    ),
    "a function behind a barrier": kernel(LOAD + "tree(s, tid);" + STORE, before=TREE),
    "pointers into one array": kernel(CUT + BEST + STORE_PAIR, shared='"2048"'),
    "functions that return": kernel(OF_FUNCTIONS, before=RESULTS),
    "halves": kernel(LOAD + PLAIN + STORE),
    "a loop of unsigned": kernel(LOAD + PLAIN.replace("int w", "unsigned int w").replace(">>= 1", "/= 2") + STORE),
    "while": kernel(LOAD + WHILE + STORE.replace("= blockIdx.x; }", "= u; }")),
    "the barrier first": kernel(LOAD.replace("__syncthreads();", "") + FIRST + STORE),
    "neighbours": kernel(LOAD + NEIGHBOURS + STORE),
    "neighbours by strides": kernel(LOAD + STRIDES + STORE),
    "an unrolled warp": kernel(LOAD + UPPER + "if (tid < 32) last_warp(s, tid);" + STORE, before=LAST_WARP),
    "a warp's template": kernel(LOAD + UPPER + "if (tid < 32) last_warp<256>(s, tid);" + STORE, before=TEMPLATE),
    "the warp in the kernel": kernel(LOAD + UPPER + f"if (tid < 32) {{ volatile float *v = s; {VOLATILE} }}" + STORE),
    "the warp with syncwarp": kernel(LOAD + UPPER + SYNCWARP + STORE),
    "a kernel of a template": OF_TYPE.replace("__global__ void k(", "template <typename T, int B>\n__global__ void k("),
    "the first place of the largest": kernel(PAIRS + BEST + STORE_PAIR),
    "a function that updates": kernel(PAIRS + LEVELS + STORE_PAIR, before="#define BLOCK 256\n" + UPDATE),
    "steps": kernel(PAIRS + STEPS),
    "two after one another": kernel(LOAD + TWO + STORE),
    "minimum by hand": kernel(LOAD + LEAST + STORE),
    "pointers": kernel(LOAD + PLAIN.replace("s[tid] += s[tid + w]", "*(s + tid) += *(s + tid + w)") + STORE),
    "a macro": kernel(LOAD + GREATER + STORE, before=MACRO),
    "two dimensions": kernel(FLAT + PLAIN.replace("blockDim.x", "(blockDim.x * blockDim.y)") + STORE, block="[32, 8]"),
    "shared memory of the launch": kernel(DYNAMIC + PLAIN + STORE, shared='"1024"'),
    "four a thread": kernel(FOUR + PLAIN + STORE),
}
LARGE = kernel((LOAD + PLAIN + STORE).replace("256", "1024"), block="1024")


@pytest.mark.parametrize("style", TREES)
def test_every_bit_of_the_tree_stays(style: str, subject_from, runner) -> None:
    given, action = subject_from(TREES[style]), ShuffleTrees()
    subject = Rules(given.contract).subject(given.candidate)
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        changed = action.apply(subject, move)
        assert "__shfl_down_sync" in changed.source
        assert changed.source.count("__syncthreads") <= 9
        # Lanes of the host device do not go in step, as those without __syncwarp take for granted.
        of_old = "last_warp" in changed.source or "volatile" in subject.candidate.source
        runner.check(subject_from(TREES["halves"]) if of_old else subject, changed, *SIZES)
        assert runner.faults(changed, subject.contract, {"n": 300}) == []


VECTORS = {
    "by a function": ("add(s[tid], s[tid + w])", "float2", "make_float2(v, v * 3.0f)", "s[0].x - s[0].y"),
    "by members": ("", "float4", "make_float4(v, i, v + 1.0f, 2.0f)", "s[0].x + s[0].y + s[0].z * s[0].w"),
    "complex": ("cuCaddf(s[tid], s[tid + w])", "cuComplex", "make_cuComplex(v, -v)", "s[0].x + 2 * cuCimagf(s[0])"),
    "by an operator": ("s[tid] + s[tid + w]", "float3", "make_float3(v, 0.5f, -v)", "s[0].x * s[0].y + s[0].z"),
}  # fmt: skip
ADDITIONS = """#include <cuComplex.h>
__device__ float2 add(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
"""


@pytest.mark.parametrize("style", sorted(VECTORS))
@pytest.mark.parametrize("counting", ["int w = 128; w > 0; w >>= 1", "int w = 1; w < 256; w *= 2"])
def test_vectors_are_handed_on_number_by_number(style: str, counting: str, subject_from, runner) -> None:
    fold, type_, first, result = VECTORS[style]
    step = f"s[tid] = {fold};" if fold else " ".join(f"s[tid].{c} += s[tid + w].{c};" for c in "xyzw")
    who = "tid < w" if "128" in counting else "tid % (2 * w) == 0"
    body = f"""
    __shared__ {type_} s[256];
    const int tid = threadIdx.x, i = blockIdx.x * 256 + tid;
    float v = i < N ? x[i] : 0.0f;
    s[tid] = {first};
    __syncthreads();
    for ({counting}) {{ if ({who}) {{ {step} }} __syncthreads(); }}
    if (tid == 0) {{ y[blockIdx.x] = {result}; at[blockIdx.x] = blockIdx.x; }}
"""
    subject = subject_from(kernel(body, before=ADDITIONS))
    moves = list(ShuffleTrees().moves(subject))
    assert moves
    for move in moves:
        changed = ShuffleTrees().apply(subject, move)
        assert "__shfl_down_sync" in changed.source
        runner.check(subject, changed, *SIZES)
        assert runner.faults(changed, subject.contract, SIZES[-1]) == []


def test_large_blocks_may_have_fewer_registers(subject_from, runner) -> None:
    subject, action = subject_from(LARGE), ShuffleTrees()
    moves = list(action.moves(subject))
    assert [m.param("each") for m in moves] == [32, 8]
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES, {"n": 5000})


@pytest.mark.parametrize("place", ["long long", "int64_t", "size_t", "std::uint32_t"])
def test_neighbours_first_with_places_of_every_width(place: str, subject_from, runner) -> None:
    tree = """
    for (int64_t u = 0; (1 << u) < 256; u++) {
        __syncthreads();
        if (tid < (256 >> (u + 1))) {
            int64_t a = (tid * 2) << u, b = (tid * 2 + 1) << u;
            if (s[a] < s[b]) { s[a] = s[b]; place[a] = place[b]; }
        }
    }
    __syncthreads();
    """
    body = PAIRS.replace("__shared__ int place", f"__shared__ {place} place") + tree + STORE_PAIR
    subject, action = subject_from("#include <cstdint>\n" + kernel(body)), ShuffleTrees()
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[blockIdx.x] = s[0]", "y[blockIdx.x] = s[1]"),  # another partial sum
        ("if (tid == 0)", "if (s[tid] > 0)"),
        ("if (tid == 0)", "const float &r = *s; if (tid == 0)"),
        ("if (tid == 0)", "float *p = &s[0]; if (tid == 0) y[0] = p[i]; if (tid == 0)"),
        ("if (tid == 0)", "float *p = &s[i]; if (tid == 0) y[0] = p[0]; if (tid == 0)"),
        ("if (tid < w)", "if (tid < w && i < N)"),  # the data decide who folds
        ("s[tid] += s[tid + w]", "s[tid] += s[tid + w] * tid"),  # what is folded depends on the thread
        ("s[tid] += s[tid + w]", "s[tid] += s[tid + w] * w"),
        ("s[tid] += s[tid + w]", "s[tid] += s[tid + w] + x[0]"),
        ("s[tid] += s[tid + w]", "{ s[tid] += s[tid + w]; y[tid] = 0; }"),
        ("s[tid] += s[tid + w]; __syncthreads();", "s[tid] += s[tid + w];"),  # warps race
        ("w > 0", "w > 1"),  # one level less
        ("w >>= 1", "w -= 32"),
        ("w = blockDim.x / 2", "w = N / 2"),
        ("__syncthreads();\nfor", "for"),
        ("s[tid] = i < N", "if (i >= N) return; s[tid] = i < N"),  # threads that are gone
        ("s[tid] = i < N", "if (tid < 128) s[tid] = i < N"),
        ("__shared__ float s", "volatile float *v = y; __shared__ float s"),
        ("if (tid == 0)", "float *alias = s + 1; if (tid == 0) y[0] = alias[0]; if (tid == 0)"),
        ("__shared__ float s", "__shared__ short2 s"),
    ],
)  # fmt: skip
def test_no_move_where_it_may_not_be_the_same(old: str, new: str, subject_from) -> None:
    text = LOAD.rstrip() + "\n" + PLAIN + STORE
    allowed = ("if (tid < 128) s", "volatile float *v = y;")  # what has nothing to do with it
    assert old in text
    found = list(ShuffleTrees().moves(subject_from(kernel(text.replace(old, new)))))
    assert bool(found) == new.startswith(allowed)


@pytest.mark.parametrize("block", ["96", "[16, 3]", '"min(n, 64)"'])
def test_no_move_for_blocks_that_are_not_whole_warps(block: str, subject_from) -> None:
    assert list(ShuffleTrees().moves(subject_from(kernel(LOAD + PLAIN + STORE, block=block)))) == []


def test_a_template_stays_at_the_size_that_its_tree_is_for(subject_from) -> None:
    text = OF_TYPE.replace("__global__ void k(", "template <typename T, int B>\n__global__ void k(").replace(
        "* 256", "* B"
    )
    given = subject_from(text.replace("s[256]", "s[B]").replace('grid = "ceil_div(n, 256)"', 'grid = "4"'))
    rules = Rules(given.contract)
    subject, action = rules.subject(given.candidate), ShuffleTrees()
    changed = action.apply(subject, next(action.moves(subject)))
    assert list(BlockSize().moves(subject))
    assert list(BlockSize().moves(rules.subject(changed))) == []


@pytest.mark.parametrize("first", [255, 0])
def test_no_move_where_arrays_lie_over_one_another(first: int, subject_from) -> None:
    text = CUT.replace("&memory[256]", f"&memory[{first}]") + BEST + STORE_PAIR
    assert list(ShuffleTrees().moves(subject_from(kernel(text, shared='"2048"')))) == []


def test_what_a_later_turn_reads_must_be_set_anew(subject_from) -> None:
    kept = STEPS.replace("s[tid] = i < N ? x[i] + (old + step) % 3 : -100.0f;", "s[tid] += i < N ? x[i] : 0.0f;")
    assert list(ShuffleTrees().moves(subject_from(kernel(PAIRS + STEPS))))
    assert list(ShuffleTrees().moves(subject_from(kernel(PAIRS + kept)))) == []


def test_a_turn_may_not_fold_what_the_one_before_left(subject_from) -> None:
    some = STEPS.replace("s[tid] = i < N ? x[i] + (old + step) % 3 : -100.0f;", "if (i < N) s[tid] = x[i] + step;")
    assert list(ShuffleTrees().moves(subject_from(kernel(PAIRS + some)))) == []


@pytest.mark.parametrize("given", ["tid < 32", "i < N", "s[0] > x[tid]"])
def test_what_only_some_threads_set_anew_is_not_read(given: str, subject_from) -> None:
    text = f"if ({given}) {{ s[tid] = 5; y[blockIdx.x] = s[32]; }}"
    assert list(ShuffleTrees().moves(subject_from(kernel(LOAD + PLAIN + text)))) == []


@pytest.mark.parametrize("width", ["128u", "(threadIdx.x + 1u)", "255u"])
def test_rows_of_a_part_of_a_block_are_not_one(width: str, subject_from) -> None:
    rows = QUOTIENT.replace("of_launch / 256u", f"of_launch / {width}")
    assert list(ShuffleTrees().moves(subject_from(kernel(rows)))) == []


def test_shared_variables_are_no_counters_of_a_tree(subject_from) -> None:
    flag = "__shared__ int w;" + LOAD + "w = 128;" + WHILE.replace("int u = blockDim.x / 2;", "").replace("u", "w")
    assert list(ShuffleTrees().moves(subject_from(kernel(flag + STORE)))) == []


def test_no_move_where_what_is_shared_is_read_before_and_set_behind(subject_from) -> None:
    last = PLAIN.replace("w > 0", "w > 1") + "if (tid == 0) s[0] += s[1];"
    behind = last + "if (tid == 0) { total = s[0]; y[blockIdx.x] = before + total; }"
    text = "__shared__ float total;" + LOAD.replace("__syncthreads();", "if (tid == 0) total = 1; __syncthreads();")
    assert list(ShuffleTrees().moves(subject_from(kernel(text + "float before = 1;" + behind))))
    assert list(ShuffleTrees().moves(subject_from(kernel(text + "float before = total;" + behind)))) == []


def test_no_move_where_a_function_has_its_own_name_for_the_memory(subject_from) -> None:
    peek = "__device__ float peek(int j) { extern __shared__ float mine[]; return mine[j]; }"
    text = kernel(DYNAMIC + PLAIN + "if (tid == 0) y[blockIdx.x] = peek(3);", before=peek, shared='"1024"')
    assert list(ShuffleTrees().moves(subject_from(text))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s[tid] = acc = acc", "s[tid] = 2 * acc; acc = acc"),  # not what the element is
        ("if (tid == 0)", "if (i < N) y[i / 256] = acc; if (tid == 0)"),  # each thread's own is needed
        ("if (tid == 0)", "acc += 1; if (tid == 0)"),
        ("float acc", "double acc"),
        ("s[tid] = acc;", "s[tid / 2] = acc;"),  # no element of its own
        ("if (tid == 0)", "s[255 - tid] = 0; if (tid == 0)"),  # others set it, with no barrier between
        ("if (tid == 0)", "more(acc); if (tid == 0)"),
        ("if (tid == 0)", "float *p = &acc; *p = 1; if (tid == 0)"),
        ("if (tid == 0)", "float &r = acc; r = 1; if (tid == 0)"),
        ("float acc", "float *p = s + i % 2; float acc"),
    ],
)
def test_a_register_that_is_not_the_element(old: str, new: str, subject_from) -> None:
    text, more = ALONG + AT_ONCE + STORE_ALONG, "__device__ void more(float &v) { v += 1; }"
    assert old in text
    assert list(ShuffleTrees().moves(subject_from(kernel(text, before=more))))
    assert list(ShuffleTrees().moves(subject_from(kernel(text.replace(old, new), before=more)))) == []


def test_the_launchs_memory_may_stand_in_front_of_the_kernel(subject_from, runner) -> None:
    memory = "extern __shared__ float s[];"
    load = LOAD.replace("__shared__ float s[256];", "")
    text = kernel(load + PLAIN + STORE, before=memory, shared="1024")
    subject = subject_from(text)
    moves = list(ShuffleTrees().moves(subject))
    assert moves
    for move in moves:
        runner.check(subject, ShuffleTrees().apply(subject, move), *SIZES)
    hidden = kernel("{ __shared__ float s[256]; s[0] = x[0]; y[0] = s[0]; }", before=memory)
    assert not list(ShuffleTrees().moves(subject_from(hidden)))
