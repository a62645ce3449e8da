"""join-steps in the styles that people write: vectors and records, functions that make indices, pointers, loops,
namespaces, several launches; and where it is not sure."""

from __future__ import annotations

import pytest

from fsr.transform.launch.join_steps import JoinSteps

SIZES = [{"logn": n} for n in (1, 2, 5, 8, 10)]


def contract(args: str, launch: str, entry: str = "k") -> str:
    buffers = "\n".join(f"// {line}" for line in args.strip().splitlines())
    launches = "\n".join(f"// {line.strip()}" for line in launch.strip().splitlines())
    return f"""
// /// fsr
// entry = "{entry}"
// [sizes]
// logn = {{min = 1, max = 20, timed = 17}}
// [args]
{buffers}
{launches}
// ///
"""


def repeated(args: str, *, grid: str = "ceil_div(2 ** logn // 2, 64)", repeat: str = "logn", entry: str = "k") -> str:
    return f"""
[[launch]]
entry = "{entry}"
grid = "{grid}"
block = 64
repeat = "{repeat}"
args = [{args}]
"""


STATE = 'state = {role = "inout", dtype = "float32", shape = ["2 * 2 ** logn"], alignment = 8}'
PLAIN = 'x = {role = "inout", dtype = "float32", shape = ["2 ** logn"]}'
WHOLE = 'x = {role = "inout", dtype = "int32", shape = ["2 ** logn"]}'

GATE = (
    contract(STATE, repeated('"state", "2 ** logn", "step"'))
    + """
__device__ __forceinline__ unsigned long long insert_zero(unsigned long long i, int bit)
{
    unsigned long long low = i & ((1ULL << bit) - 1);
    return ((i ^ low) << 1) | low;
}
__global__ void k(float2 *state, unsigned long long dim, int target)
{
    unsigned long long t = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= dim >> 1) return;
    const unsigned long long i0 = insert_zero(t, target);
    const unsigned long long i1 = i0 | (1ULL << target);
    float2 a = state[i0], b = state[i1];
    state[i0] = make_float2(a.x + b.x, a.y + b.y);
    state[i1].x = a.x - b.x;
    state[i1].y = a.y - b.y;
}
"""
)
CONTROLLED = (
    contract(STATE, repeated('"state", "2 ** logn", "step"', grid="ceil_div(2 ** logn, 64)"))
    + """
typedef float2 Amplitude;
__global__ void k(Amplitude *state, int dim, int bit)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < dim) {
        if ((i >> bit) & 1) return;
        int partner = i;
        if (bit >= 0)
            partner ^= 1 << bit;
        Amplitude *a = state + i, *b = &state[partner];
        Amplitude kept = *a;
        a->x = b->y;
        a->y = b->x;
        *b = kept;
    }
}
"""
)
TWO_BITS = contract(STATE, repeated('"state", "2 ** logn", "step"', grid="ceil_div(max(2 ** logn // 4, 1), 64)",
                                    repeat="max(logn - 1, 0)")) + """
__global__ void k(float2 *state, long dim, int q)
{
    long t = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (t * 4 >= dim) return;
    long place[4];
    long low = t & ((1L << q) - 1);
    long base = ((t >> q) << (q + 2)) | low;
    for (int j = 0; j < 4; ++j) {
        place[j] = base;
        for (int b = 0; b < 2; b++)
            if (j & (1 << b)) place[j] |= 1L << (q + b);
    }
    float2 v[4];
    for (int j = 0; j < 4; ++j) v[j] = state[place[j]];
    for (int j = 0; j < 4; ++j) {
        float2 other = v[3 - j];
        state[place[j]] = make_float2(v[j].x + other.y, v[j].y - other.x);
    }
}
"""  # fmt: skip
FOURIER = contract(f'{STATE}\ntable = {{role = "in", dtype = "float32", shape = ["2 * 2 ** logn"]}}',
                   repeated('"state", "table", "2 ** logn", "step"')) + """
struct Complex { float re, im; };
__device__ void butterfly(Complex &a, Complex &b, Complex w)
{
    Complex t = {b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
    b.re = a.re - t.re; b.im = a.im - t.im;
    a.re += t.re; a.im += t.im;
}
__global__ void k(Complex *state, const Complex *table, int n, int stage)
{
    const int t = threadIdx.x + blockIdx.x * blockDim.x;
    if (t < n / 2) {
        int half = 1, k = 0;
        while (k < stage) { half *= 2; k++; }
        int group = t / half, offset = t % half;
        int i = group * half * 2 + offset;
        butterfly(state[i], state[i + half], table[offset * (n / (2 * half))]);
    }
}
""".replace("Complex t = {b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};",
            "Complex t; t.re = b.re * w.re - b.im * w.im; t.im = b.re * w.im + b.im * w.re;")  # fmt: skip
SWAPS = (
    contract(PLAIN, repeated('"x", "2 ** logn", "1 << step"', grid="ceil_div(2 ** logn, 64)"))
    + """
#define ORDER(a, b) if (x[(a)] > x[(b)]) swap_them(x, (a), (b))
__device__ void swap_them(float *v, unsigned a, unsigned b) { float t = v[a]; v[a] = v[b]; v[b] = t; }
__global__ void k(float *x, unsigned n, unsigned half)
{
    unsigned i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n || (i & half)) return;
    unsigned j = i + half;
    if (x[i] > x[j]) swap_them(x, i, j);
}
"""
)
POINTED = (
    contract(PLAIN, repeated('"x", "2 ** logn", "step"'))
    + """
__device__ void add(float *a, float *b) { float s = *a + *b, d = *a - *b; *a = s; *b = d; }
__global__ void k(float *x, size_t n, unsigned level)
{
    size_t t = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    size_t half = (size_t)1 << level;
    float *pair = x + (t >> level) * 2 * half;
    pair += t & (half - 1);
    add(pair, pair + half);
}
"""
)
NAMED = contract(WHOLE, """
[[launch]]
entry = "ns::start"
grid = "ceil_div(2 ** logn, 128)"
block = 128
args = ["x", "2 ** logn"]
""" + repeated('"x", "2 ** logn", "2 << step"', entry="ns::k", grid="ceil_div(2 ** logn, 64)", repeat="logn")
    + """
[[launch]]
entry = "ns::k"
grid = "ceil_div(2 ** logn, 64)"
block = 64
args = ["x", "2 ** logn", "2"]
""", "ns::k") + """
namespace ns {
constexpr int ONE = 1;
__global__ void start(int *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + i;
}
__global__ void k(int *x, int n, int span)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && (i % span) < span / 2) {
        int other = i + span / 2;
        int low = min(x[i], x[other]) + ONE;
        x[other] = max(x[i], x[other]);
        x[i] = low;
    }
}
}
"""  # fmt: skip
NEIGHBOURS = (
    contract(
        f'{WHOLE}\ny = {{role = "inout", dtype = "int32", shape = ["2 ** logn"]}}',
        repeated('"x", "y", "2 ** logn", "step"', grid="ceil_div(2 ** logn, 64)", repeat="6"),
    )
    + """
__constant__ int weights[4] = {3, 1, -2, 5};
__global__ void k(int *x, int *y, int n, int turn)
{
    int i = threadIdx.x + blockIdx.x * 64;
    if (i >= n) return;
    int first = i - i % 16, left = i == first ? first : i - 1;
    if (turn % 2 == 0) y[i] = x[i] * weights[i & 3] + x[left];
    else x[i] = y[i] - y[left] * weights[turn & 3];
}
"""
)
MACROS = (
    contract(WHOLE, repeated('"x", "2 ** logn", "1 << step"', grid="ceil_div(2 ** logn, 64)"))
    + """
#define GID (blockIdx.x * blockDim.x + threadIdx.x)
#define AT(p, i) ((p)[(i)])
__global__ void k(int *x, int n, int half)
{
    int i = GID;
    int partner = i ^ half;
    if (partner > i && partner < n) {
        int a = AT(x, i), b = AT(x, partner);
        AT(x, i) = a + b;
        AT(x, partner) = a - b;
    }
}
"""
)
REVERSED = (
    contract(WHOLE, repeated('"x", "2 ** logn", "2 ** logn >> (step + 1)"'))
    + """
__global__ void k(int *x, int n, int h)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int pairs = n / 2;
    if (t < pairs) {
        int j = (t / h) * (h * 2) + t % h;
        int *p = &x[j];
        int u = p[0], v = p[h];
        p[0] = u + v;
        p[h] = u - v;
    }
}
"""
)
INTERLEAVED = (
    contract(STATE, repeated('"state", "2 ** logn", "step"'))
    + """
__global__ void k(float *state, int n, int s)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int mask = (1 << s) - 1;
    for (int c = 0; c < 2; ++c) {
        int i = ((t & ~mask) << 1) | (t & mask), j = i | (mask + 1);
        if (j < n) {
            float a = state[2 * i + c], b = state[2 * j + c];
            state[2 * i + c] = a + b;
            state[2 * j + c] = a - b;
        }
    }
}
"""
)
UNEVEN = (
    contract(
        f'{WHOLE}\ncount = {{role = "inout", dtype = "int32", shape = ["2 ** logn // 2"]}}',
        repeated('"x", "count", "2 ** logn", "step"'),
    )
    + """
__global__ void k(int *x, int *count, unsigned n, unsigned s)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    unsigned i = (t >> s << (s + 1)) | (t & ((1u << s) - 1)), j = i | 1u << s;
    if (x[i] > x[j]) {
        int kept = x[i];
        x[i] = x[j];
        x[j] = kept;
        count[t] += 1;
    }
}
"""
)

BACKWARDS = (
    contract(STATE, repeated('"state", "logn", "step"'))
    + """
__global__ void k(float2 *state, int qubits, int target)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= (1 << qubits) / 2) return;
    int bit = qubits - 1 - target;
    int i = ((t >> bit) << (bit + 1)) | (t & ((1 << bit) - 1));
    float2 pair[2] = {state[i], state[i + (1 << bit)]};
    state[i] = float2{pair[0].x + pair[1].x, pair[0].y};
    state[i + (1 << bit)] = {pair[0].x - pair[1].x, pair[1].y};
}
"""
)
IN_PLACE = (
    contract(PLAIN, repeated('"x", "x", "2 ** logn", "step"'))
    + """
__global__ void k(const float *in, float *out, int n, int stage)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, h = n >> (stage + 1);
    if (t >= n / 2) return;
    int i = (t & ~(h - 1)) * 2 + (t & (h - 1));
    float a = in[i], b = in[i + h];
    out[i] = a + b;
    out[i + h] = a - b;
}
"""
)
BATCHED = contract('x = {role = "inout", dtype = "float32", shape = ["3", "2 * 2 ** logn"], alignment = 8}',
                   repeated('"x", "2 ** logn", "1 << step"').replace(
                       'grid = "ceil_div(2 ** logn // 2, 64)"', 'grid = ["ceil_div(2 ** logn // 2, 64)", "3"]')) + """
__global__ void k(float2 *x, int n, int half)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2 || blockIdx.y >= gridDim.y) return;
    float2 *row = x + blockIdx.y * n;
    int i = t / half * 2 * half + t % half;
    float2 a = row[i], b = row[i + half];
    row[i] = make_float2(a.x + b.x, a.y - b.y);
    row[i + half] = make_float2(a.x - b.x, a.y + b.y);
}
"""  # fmt: skip
TEMPLATE = (
    contract(
        f'{STATE}\ntable = {{role = "in", dtype = "float32", shape = ["2 * 2 ** logn"], alignment = 8}}',
        repeated(
            '"state", "table", "2 ** logn", "1 << step", "2 ** logn >> (step + 1)", 0',
            entry="fft::k<fft::Source::kTable, 2>",
        ),
        "fft::k<fft::Source::kTable, 2>",
    )
    + """
namespace fft {
enum class Source { kTable, kSines };
__device__ float2 product(const float2 &a, const float2 &b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
template <Source FROM, unsigned RADIX = 2>
__global__ void k(float2 *state, const float2 *table, int n, int half, int stride, bool inverse)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / (int)RADIX) return;
    int group = t / half, j = t - group * half, at = group * RADIX * half + j;
    float2 even = state[at], odd = state[at + half], w;
    if constexpr (FROM == Source::kTable) {
        w = table[j * stride];
        if (inverse) w.y = -w.y;
    } else {
        float s, c;
        sincosf(3.1415927f * j / half, &s, &c);
        w = make_float2(c, s);
    }
    float2 turned = product(w, odd);
    state[at] = make_float2(even.x + turned.x, even.y + turned.y);
    state[at + half] = make_float2(even.x - turned.x, even.y - turned.y);
}
}
"""
)
TWO_INSTANCES = TEMPLATE.replace(
    "// [[launch]]",
    """// [[launch]]
// entry = "fft::k<fft::Source::kTable, 2u>"
// grid = "ceil_div(2 ** logn // 2, 64)"
// block = 64
// args = ["state", "table", "2 ** logn", "1", "2 ** logn >> 1", 1]
// [[launch]]""",
    1,
)
# Of the type that it is declared with, this is 2; as an int it would be 0.
UNSIGNED = TEMPLATE.replace("group * RADIX", "group * ((1 - RADIX) / 2147483647)")
WEIGHED = contract("""x = {role = "inout", dtype = "float32", shape = ["2 ** logn"]}
shape.scale = {value = 3}
shape.taps = {value = [1, 2, 4, 8]}
shape.size = {value = "2 ** logn"}""", repeated('"x", "1 << step", "shape"', grid="ceil_div(2 ** logn // 2, 64)")) + """
struct Shape { unsigned scale, taps[4], size; };
__device__ float weight(unsigned at, const Shape *shape)
{
    float sum = 0.0f;
    for (unsigned tap = shape->scale; tap > 0u; tap -= 1u) sum += (float)(shape->taps[tap] & at);
    return sum;
}
__global__ void k(float *x, unsigned half, Shape shape)
{
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned here = t / half * 2u * half + t % half, there = here + half;
    if (t >= shape.size / 2u) return;
    if (there >= shape.size) return;
    float a = x[here], b = x[there];
    if (a > b && weight(t, &shape) > 2.0f) return;
    x[here] = a + b;
    x[there] = a - weight(here, &shape);
}
"""  # fmt: skip

STYLES = {
    "gate": GATE, "controlled": CONTROLLED, "two-bits": TWO_BITS, "fourier": FOURIER, "swaps": SWAPS,
    "pointed": POINTED, "named": NAMED, "neighbours": NEIGHBOURS, "macros": MACROS, "reversed": REVERSED,
    "interleaved": INTERLEAVED, "uneven": UNEVEN, "backwards": BACKWARDS, "in-place": IN_PLACE, "batched": BATCHED,
    "template": TEMPLATE, "two-instances": TWO_INSTANCES, "unsigned": UNSIGNED, "weighed": WEIGHED,
}  # fmt: skip


@pytest.mark.parametrize("text", STYLES.values(), ids=STYLES)
def test_all_steps_are_done_in_their_order(text: str, subject_from, runner) -> None:
    subject, action = subject_from(text), JoinSteps()
    moves = list(action.moves(subject))
    assert moves
    for move in moves[:: max(len(moves) // 2, 1)]:
        runner.check(subject, action.apply(subject, move), *SIZES)


def test_a_kernel_that_is_launched_elsewhere_stays(subject_from) -> None:
    subject, action = subject_from(NAMED), JoinSteps()
    made = action.apply(subject, next(iter(action.moves(subject))))
    assert [launch.entry for launch in made.plan.launches] == ["ns::start", "ns::k_steps", "ns::k"]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (GATE, "insert_zero(t, target)", "insert_zero(dim / 2 - 1 - t, target)"),  # another block's
        (GATE, "state[i1].x = a.x", "state[(int)a.x & 1].x = a.x"),  # data tell where
        (GATE, "float2 a = state[i0]", "float2 a = __ldg(&state[i0])"),
        (SWAPS, "if (x[i] > x[j]) swap_them", "if (x[i] > x[j]) j = (unsigned)x[j]; swap_them"),
        (SWAPS, "unsigned j = i + half;", "unsigned j = i + half; while (x[j] < 0 && j > half) j -= half;"),
        (POINTED, "add(pair, pair + half)", "add(pair, x + (unsigned)*pair)"),
        (POINTED, "float *pair", "float2 *wide = (float2 *)x; wide[t].x += 1; float *pair"),
        (MACROS, "#define AT(p, i) ((p)[(i)])", "#define AT(p, i) x[i + 0]"),
        (NEIGHBOURS, "i - i % 16", "0"),
        (NEIGHBOURS, "y[left]", "y[weights[i & 3]]"),
        (BATCHED, "x + blockIdx.y * n", "x + blockIdx.y * (n / 2)"),
        (BATCHED, 'shape = ["3", "2 * 2 ** logn"]', 'shape = ["7", "2 * 2 ** logn"]'),
        (UNEVEN, "count[t] += 1", "count[0] += 1"),
        (TEMPLATE, "group * RADIX * half + j", "group * half + j"),
        (WEIGHED, "there = here + half", "there = t + half"),
        (FOURIER, "struct Complex { float re, im; };", "struct Complex { float re; int im; };"),
    ],
)
def test_nothing_is_offered_where_it_is_not_sure(text: str, old: str, new: str, subject_from) -> None:
    assert old in text
    assert not list(JoinSteps().moves(subject_from(text.replace(old, new))))


SETTLED = SWAPS.replace(
    "__global__",
    """__device__ void settle(unsigned &j, unsigned to, float seen)
{
    if (seen > 0.0f) return;
    j = to;
}
__global__""",
).replace("unsigned j = i + half;", "unsigned j = n - 1 - i; settle(j, i + half, x[i]);")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("if (seen > 0.0f) return;", "for (int k = 0; seen > k; ++k) if (to > 3) return;"),
        ("if (seen > 0.0f) return;", "if (seen > 0.0f) { if (to > 3) return; }"),
        ("    j = to;", "    unsigned *at = &j; *at = to;"),
    ],
)
def test_a_function_that_may_end_before_it_says_where(old: str, new: str, subject_from) -> None:
    sure = SETTLED.replace("if (seen > 0.0f) return;", "if (to > n_most) return;").replace("n_most", "4000000000u")
    assert list(JoinSteps().moves(subject_from(sure)))
    assert old in SETTLED
    assert not list(JoinSteps().moves(subject_from(SETTLED.replace(old, new))))


def test_elements_of_a_table_of_rows_are_not_taken_for_one_another(subject_from) -> None:
    text = MACROS.replace(
        "int partner = i ^ half;", "int rows[2][2] = {1, 1, 0, 0}; int partner = i ^ (half * rows[1][0] + n / 2);"
    )
    assert not list(JoinSteps().moves(subject_from(text)))
