"""warp-section: what one thread of a block, or each of its first few, does alone is done by warps, to the same end."""

from __future__ import annotations

import random

import pytest

from fsr.transform.sections.warp_action import WarpSection

SIZES = [{"blocks": b, "n": n} for b, n in [(1, 8), (3, 19), (2, 64)]]


def kernel(body: str, *, block: str = "128", head: str = "", shared: str = "", exact: bool = False) -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// blocks = {{min = 1, max = 64, timed = 8}}
// n = {{min = 8, max = 256, timed = 64}}
// [args]
// in = {{role = "in", shape = ["blocks", 512]}}
// label = {{role = "in", shape = [512], dtype = "int32", low = 0, high = 7}}
// out = {{role = "inout", shape = ["blocks", 512]}}
// w = {{value = "n"}}
// bins = {{value = 8}}
// [launch]
// grid = "blocks"
// block = {block}
{f'// shared_bytes = "{shared}"' if shared else "//"}
// [tolerance]
{"// exact = true" if exact else '// sum_length = "256"'}
// ///
{head}
__global__ void k(const float *in, const int *label, float *out, int w, int bins)
{{
{body}
}}
"""


FILL = """
    __shared__ float s[128];
    int tid = threadIdx.x;
    float *row = out + blockIdx.x * 512;
    s[tid] = tid < w ? in[blockIdx.x * 512 + tid] : 0.0f;
    __syncthreads();
"""
SUM = (
    FILL
    + """
    if (tid == 0) {
        float sum = 0.0f;
        for (int i = 0; i < blockDim.x; i++) sum += s[i];
        row[0] = sqrtf(fabsf(sum));
    }
"""
)
OWN_SUM = (
    FILL
    + """
    float sum = s[(tid * 5) % 128] * 2.0f;
    if (!threadIdx.x) {
        for (int i = 1; i < 128; ++i) sum += s[i];
        row[3] += sum;
    }
"""
)
PLACE = (
    FILL
    + """
    if (threadIdx.x == 0) {
        float best = s[0];
        int at = 0;
        for (int i = 1; i < w; i++)
            if (s[i] > best) { best = s[i]; at = i; }
        row[0] = best;
        row[1] = (float)at;
    }
"""
)
TIES = (
    FILL
    + """
    __shared__ int place[128];
    place[tid] = label[tid] * 3 + tid % 5;
    __syncthreads();
    if (threadIdx.x == 0) {
        float best = s[0];
        int at = place[0], turn = 0;
        for (int i = 1; i < w; i++)
            if (s[i] < best || (s[i] == best && place[i] > at)) { best = s[i]; at = place[i]; turn = i; }
        row[0] = best + at * 100.0f;
        row[1] = turn;
    }
"""
)
SCAN = (
    FILL
    + """
    if (tid == 0) {
        float all = 0.5f;
        for (int i = 0; i < w; i++) { all += s[i]; row[i] = all; }
        int count = 0, first = -1;
        for (int i = 0; i < 128; i++) {
            if (s[i] > 1.0f) { row[256 + count] = i; count++; s[i] = count; }
        }
        for (int i = 1; i <= w; i += 2) {
            const float twice = s[i] * 2.0f;
            row[128 + i] = count;
            count = count + (int)twice;
        }
        row[500] = count + all;
        float below = 1.0f;
        for (int i = w - 1; i >= 0; --i) { float own = s[i]; s[i] = below; below += own; }
        row[501] = below;
    }
    __syncthreads();
    row[384 + tid % 64] = s[tid % 64];
"""
)
MEAN = (
    FILL
    + """
    __shared__ float mean, deviation;
    if (tid == 0) {
        float sum = 0.0f, squares = 0.0f;
        for (int i = 0; i < w; i++) { sum += s[i]; squares += s[i] * s[i]; }
        mean = sum / w;
        deviation = sqrtf(squares / w - mean * mean + 1.0f);
    }
    __syncthreads();
    row[tid] = (s[tid] - mean) / deviation;
"""
)
BINS = """
    extern __shared__ float s[];
    int tid = threadIdx.x;
    for (int c = 0; c < bins; ++c) s[tid * bins + c] = 0.0f;
    __syncthreads();
    for (int j = tid; j < 512; j += blockDim.x) s[tid * bins + (label[j] & 7)] += in[blockIdx.x * 512 + j];
    __syncthreads();
    if (tid < bins) {
        float total = 0.0f;
        for (int t = 0; t < blockDim.x; ++t) total += s[t * bins + tid];
        s[tid] = total;
    }
    __syncthreads();
    if (tid == 0) {
        float least = 1e30f;
        for (int c = 0; c < bins; ++c) {
            if (c == label[blockIdx.x]) continue;
            if (s[c] < least) least = s[c];
        }
        out[blockIdx.x * 512] = least;
    }
"""
ROWS = """
    __shared__ float s[128];
    __shared__ float norm;
    int tid = threadIdx.x;
    for (int r = 0; r < 4; r++) {
        s[tid] = in[blockIdx.x * 512 + r * 128 + tid];
        __syncthreads();
        if (tid == 0) {
            norm = 1.0f;
            for (int i = 0; i < 128; i++) norm += s[i] * s[i];
        }
        __syncthreads();
        out[blockIdx.x * 512 + r * 128 + tid] = s[tid] / norm;
        __syncthreads();
    }
"""
BRANCHES = (
    FILL
    + """
    if (tid == 0 && w > 10) {
        int count = 0;
        for (int i = 0; i < 128; i++) if (s[i] > 0.5f) count++;
        if (count > 3) {
            float sum = 0.0f;
            for (int i = 0; i < w; i++) if (s[i] > 0.5f) sum += s[i];
            row[1] = sum / count;
        } else {
            row[1] = -1.0f;
        }
    }
"""
)
ATOMIC = (
    FILL
    + """
    if (tid == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 128; i++) sum += s[i];
        atomicAdd(&row[7], sum);
    }
"""
)
PLANE = """
    __shared__ float s[256];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    s[t] = in[blockIdx.x * 512 + t];
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        float most = -1e30f;
        for (int i = 0; i < 256; i++) most = fmaxf(most, s[i]);
        out[blockIdx.x * 512] = most;
    }
"""
TWO_LOOPS = (
    FILL
    + """
    if (tid == 0) {
        for (int i = 0; i < w; i++) s[i] = s[i] * 2.0f;
        float sum = 0.0f;
        for (int i = 0; i < w; i++) sum += s[i];
        for (int i = 0; i < w; i++) row[i] = s[i] / (1.0f + sum * sum);
    }
"""
)
WRITES_FIRST = (
    FILL
    + """
    if (tid == 0) s[5] = 3.0f;
    if (tid == 0) {
        float sum = 0.0f;
        for (int i = 0; i < 128; i++) sum += s[i];
        row[0] = sum;
    }
"""
)
SECTIONS = {
    "scan": kernel(SCAN), "ties": kernel(TIES),
    "sum": kernel(SUM), "own sum": kernel(OWN_SUM), "place": kernel(PLACE), "mean": kernel(MEAN),
    "bins": kernel(BINS, shared="128 * 8 * 4"), "rows": kernel(ROWS), "branches": kernel(BRANCHES),
    "atomic": kernel(ATOMIC), "plane": kernel(PLANE, block="[32, 8]"), "two loops": kernel(TWO_LOOPS),
    "writes first": kernel(WRITES_FIRST),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_warp_does_what_a_thread_did(name: str, subject_from, apply_move, close_outputs, runner) -> None:
    subject = subject_from(SECTIONS[name])
    changed = apply_move(WarpSection(), subject, "warp-section@kernel")
    assert changed.plan == subject.candidate.plan
    assert "lane" in changed.source
    close_outputs(subject, changed, SIZES)
    assert runner.faults(changed, subject.contract, SIZES[1]) == []


def test_lanes_do_what_the_thread_did_in_its_order_of_elements(subject_from, apply_move) -> None:
    source = apply_move(WarpSection(), subject_from(SECTIONS["place"]), "warp-section@kernel").source
    assert "for (int i = 1 + lane; i < w; i += 32)" in source
    assert "if (threadIdx.x < 32) {" in source
    source = apply_move(WarpSection(), subject_from(SECTIONS["bins"]), "warp-section@kernel").source
    assert "for (int which = threadIdx.x / 32; which < bins; which += 4)" in source


def test_all_meet_where_the_thread_itself_wrote_what_lanes_read(subject_from, apply_move) -> None:
    for name, barriers in (("sum", 1), ("writes first", 2), ("mean", 2), ("two loops", 1)):
        source = apply_move(WarpSection(), subject_from(SECTIONS[name]), "warp-section@kernel").source
        assert source.count("__syncthreads") == barriers, name


def test_the_longer_one_thread_takes_the_more_is_promised(subject_from) -> None:
    short, long_ = (subject_from(kernel(SUM.replace("blockDim.x; i++", f"{turns}; i++"))) for turns in (16, 128))
    assert max(m.gain for m in WarpSection().moves(short)) < max(m.gain for m in WarpSection().moves(long_))


LOOP = "for (int i = 0; i < blockDim.x; i++) sum += s[i];"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int tid = threadIdx.x;", "int tid = threadIdx.x; if (in[tid] > 1.0f) return;"),
        ("tid == 0", "tid == 5 || tid == 0"),
        ("tid == 0", "tid == 40"),  # of another warp
        ("__syncthreads();", ""),
        ("__syncthreads();", "__syncwarp();"),
        ("sum += s[i]", "sum = sum * sum + s[i]"),  # the order tells
        ("sum += s[i]", "{ sum += s[i]; s[(i + 1) % 128] = sum; }"),
        ("sum += s[i]", "{ s[i] = 2.0f; sum += s[i]; row[i] = sum; }"),  # what is added is set in the turn
        ("sum += s[i]", "{ sum += s[i]; if (i == 3) sum = 0.0f; row[i] = sum; }"),
        ("sum += s[i]", "{ sum += s[i] * sum; row[i] = sum; }"),
        ("sum += s[i]", "{ if (s[i] > sum) { sum += s[i]; row[i] = sum; } }"),
        ("sum += s[i]", "{ sum += s[i]; if (sum > 3.0f) break; }"),
        ("sum += s[i]", "{ sum += s[i]; if (sum > 3.0f) return; }"),
        ("i < blockDim.x", "i < blockDim.x && sum < 3.0f"),
        (LOOP, f"float mine[4]; {LOOP} for (int i = 0; i < 4; i++) mine[i] = sum; sum = mine[w & 3];"),
        (LOOP, f"for (int i = 0; i < 4; i++) sum += s[i]; {'sum += s[7];'}"),  # few turns
        (LOOP, f'asm volatile(""); {LOOP}'),
        ("row[0] = sqrtf(fabsf(sum));\n    }", "row[0] = sum;\n    }\n    row[tid + 1] = s[tid] = 2.0f;"),
    ],
)
def test_no_move_where_order_or_threads_would_tell(old: str, new: str, subject_from) -> None:
    assert old in SUM
    assert list(WarpSection().moves(subject_from(kernel(SUM.replace(old, new))))) == []


@pytest.mark.parametrize("threads", ["tid < 100", "tid < w"])
def test_no_warp_is_one_of_many_threads(threads: str, subject_from) -> None:
    moves = list(WarpSection().moves(subject_from(kernel(SUM.replace("tid == 0", threads)))))
    assert {m.param("strides") for m in moves} == {"all"}


def test_no_move_where_a_variable_of_the_thread_lives_on(subject_from) -> None:
    ended = OWN_SUM.replace("row[3] += sum;\n    }", "row[3] += sum;\n    }\n    row[tid + 8] = sum;")
    assert ended != OWN_SUM
    assert list(WarpSection().moves(subject_from(kernel(ended)))) == []


def test_no_move_where_bits_must_stay_or_blocks_are_no_whole_warps(subject_from) -> None:
    assert list(WarpSection().moves(subject_from(kernel(SUM, exact=True)))) == []
    assert list(WarpSection().moves(subject_from(kernel(PLACE, exact=True))))
    for block in ("48", '"n"', "[8, 16]"):
        assert list(WarpSection().moves(subject_from(kernel(SUM, block=block)))) == []


GUARDS = ("tid == 0", "!threadIdx.x", "threadIdx.x < 1", "tid < 5", "tid <= 2 && w > 9")
FOLDS = (
    "float a = {0}; for (int i = 0; i < 128; i++) a += s[i] * {1};",
    "float a = {0}; for (int i = 127; i >= 0; i--) a = fmaxf(a, s[i] - {1});",
    "int c = 0; float a = 0.0f; for (int i = 0; i < w; i++) {{ if (s[i] > {0}) {{ c++; a += s[i]; }} }} a += c;",
    "float a = 1e9f; int p = -1; for (int i = 0; i < w; ++i) {{ float d = fabsf(s[i] - {0});"
    " if (d < a) {{ a = d; p = i; }} }} a += p * {1};",
    "float a = {0}; for (int i = 0; i < 16; i++) for (int j = 0; j < 8; j++) a += s[i * 8 + j] * (i + {1});",
    "float a = {0}; for (int i = 0; i < 20; i++) {{ a += s[i + tid]; row[tid * 20 + i + 100] = a * {1}; }}",
    "int c = 0; for (int i = 0; i < 20; i++) {{ if (s[i] > {0}) row[tid * 20 + c++ + 100] = i; }} float a = c;",
    "bool some = false; for (int i = tid; i < 128; i += 4) {{ if (s[i] == {0}) some = true; }} float a = some;",
)
ENDS = (
    "row[tid] = a;",
    "row[tid] = a; row[tid + 200] = {1} + a;",
    "if (a > {0}) row[tid] = a; else row[tid] = -{1};",
    "atomicAdd(&row[tid], a);",
    "for (int i = 0; i < 24; i++) row[tid * 24 + i] = a + i * {1};",
    "kept[tid] = a;",
)
AROUND = ("{0}", "for (int r = 0; r < 3; r++) {{ {0} __syncthreads(); s[tid] += kept[0] + r; __syncthreads(); }}")


@pytest.mark.parametrize("seed", range(60))
def test_composed_sections(seed: int, subject_from, close_outputs, runner) -> None:
    rng = random.Random(4500 + seed)
    numbers = rng.choice(["0.0f", "1.0f", "2.0f"]), rng.choice(["2", "3.0f", "tid", "w"])
    parts = [rng.choice(FOLDS).format(*numbers), rng.choice(ENDS).format(*numbers)]
    section = f"if ({rng.choice(GUARDS)}) {{ {' '.join(parts)} }}"
    whole = rng.choice(AROUND).format(section)
    own = rng.choice(["", f"const float own = s[{rng.randrange(128)}];", "int far = tid * 3 + w;"])
    if "far" in own:
        whole = whole.replace("row[tid] = a", "row[(far % 64)] = a")
    tail = "__syncthreads();\n    if (w > 3) row[tid + 300] = kept[tid % 5];"
    head = FILL.replace("int tid", "__shared__ float kept[8];\n    int tid").replace("tid] = tid < w", "tid] = tid < w")
    clear = "if (tid < 8) kept[tid] = 0.0f;\n    __syncthreads();"
    subject = subject_from(kernel(f"{head}\n    {clear}\n    {own}\n    {whole}\n    {tail}"))
    for move in WarpSection().moves(subject):
        changed = WarpSection().apply(subject, move)
        close_outputs(subject, changed, SIZES)
        faults = runner.faults(changed, subject.contract, SIZES[1])
        assert faults == [] or runner.faults(subject.candidate, subject.contract, SIZES[1])
