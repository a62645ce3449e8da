"""share-section: what one thread of a block does alone is dealt out to all, and nothing is where order would tell."""

from __future__ import annotations

import pytest

from fsr.transform.sections.action import ShareSection

SIZES = [{"blocks": b, "n": n} for b, n in [(1, 8), (3, 19), (2, 40)]]


def kernel(body: str, *, block: str = "[8, 4]", head: str = "", shared: str = "") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// blocks = {{min = 1, max = 64, timed = 8}}
// n = {{min = 1, max = 256, timed = 64}}
// [args]
// in = {{role = "in", shape = ["blocks + 2", 512]}}
// out = {{role = "inout", shape = ["blocks", 512]}}
// w = {{value = "n"}}
// [launch]
// grid = "blocks"
// block = {block}
{f'// shared_bytes = "{shared}"' if shared else "//"}
// ///
{head}
__global__ void k(const float *in, float *out, int w)
{{
{body}
}}
"""


LINE = "const int t = threadIdx.y * blockDim.x + threadIdx.x;"
SHOW = "for (int m = t; m < 200; m += 32) out[blockIdx.x * 512 + m] = s[m] * 2.0f;"
NEST = f"""
    __shared__ float s[200];
    {LINE}
    if (threadIdx.x == 0 && threadIdx.y == 0) {{
        for (int i = 0; i < 10; i++)
            for (int j = 0; j < 20; j++)
                s[i * 20 + j] = in[blockIdx.x * 512 + j * 10 + i];
    }}
    __syncthreads();
    {SHOW}
"""
PLAIN = f"""
    __shared__ float s[200];
    {LINE}
    if (t == 0) {{
        for (int i = 0; i < 200; i++) s[i] = in[blockIdx.x * 512 + i];
    }}
    __syncthreads();
    {SHOW}
"""
TWO_DIMENSIONS = f"""
    __shared__ float tile[6][11];
    int i, j;
    {LINE}
    if (threadIdx.x + threadIdx.y == 0) {{
        for (i = 0; i < 6; i++) {{
            int row = (blockIdx.x + i % 3) * 512;
            for (j = 9; j >= 0; j--) {{
                if (j < w) {{
                    tile[i][j] = in[row + j];
                }} else {{
                    float sum = 0.0f;
                    for (int c = 0; c < 3; c++) sum += in[row + c];
                    tile[i][j] = sum;
                }}
            }}
        }}
    }}
    __syncthreads();
    for (i = 0; i < 6; i++)
        for (j = t; j < 10; j += 32) out[blockIdx.x * 512 + i * 10 + j] = tile[i][j];
"""
TURNS = """
    __shared__ float s[32];
    int tid = threadIdx.x;
    float sum = 0.0f;
    for (int base = 0; base < w; base += 32) {
        if (!threadIdx.x) {
            for (unsigned int i = 0; i < 32; ++i)
                s[i] = base + (int)i < w ? in[(blockIdx.x + 1) * 512 + base + i] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 32; i++) sum += s[i] * (i + tid);
        __syncthreads();
    }
    out[blockIdx.x * 512 + tid] = sum;
"""
RESULTS = """
    __shared__ float s[64];
    int tid = threadIdx.x;
    s[tid] = in[blockIdx.x * 512 + tid] * 3.0f;
    __syncthreads();
    if (tid < 1) {
        int base = blockIdx.x * 512;
        for (int i = 0; i < 64; i += 2) {
            out[base + i] = s[63 - i];
            out[base + i + 1] = s[i] + tid;
        }
    }
"""
SEVERAL = """
    __shared__ float s[64], p[128];
    __shared__ int count;
    int tid = threadIdx.x;
    if (0 == tid) {
        count = w;
        for (int i = 0; i < 64; i++) s[i] = in[i];
        // what comes next reads it
        for (int i = 0; i < 64; i++) { p[2 * i] = s[63 - i]; p[2 * i + 1] = s[i]; }
        s[0] = 7.0f;
        p[5] = 9.0f;
    }
    __syncthreads();
    out[blockIdx.x * 512 + tid] = s[tid] + p[tid] + p[tid + 64] + count;
"""
LAST = """
    __shared__ float s[64];
    int tid = threadIdx.x;
    if (tid == 63) {
        for (int i = 0; i != 64; i++) s[i] = in[blockIdx.x * 512 + i] + tid;
    }
    __syncthreads();
    out[blockIdx.x * 512 + tid] = s[tid];
"""
BRANCHES = """
    __shared__ float s[66];
    int tid = threadIdx.x;
    s[tid + 1] = in[(blockIdx.x + 1) * 512 + tid];
    if (w > 10) {
        if (threadIdx.x == 0) {
            if (blockIdx.x > 0) {
                for (int i = 0; i < 8; i++) out[blockIdx.x * 512 + 100 + i] = in[i];
            } else {
                for (int i = 0; i < 16; i++) out[blockIdx.x * 512 + 100 + i * 2] = in[i + 3];
                out[blockIdx.x * 512 + 200] = 4.0f;
            }
            s[0] = 1.0f;
            s[65] = 2.0f;
        }
    }
    __syncthreads();
    if (w > 10) out[blockIdx.x * 512 + tid] = s[tid] + s[tid + 2];
"""
GLOBAL_ID = """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        for (int k = 0; k < w; k++) out[256 + k] = in[k] + i;
    }
    out[blockIdx.x * 512 + threadIdx.x] = 1.0f;
"""
MACROS = f"""
    extern __shared__ float buffer[];
    float *s = buffer;
    {LINE}
    if (FIRST) {{
        int i = 0;
        while (i < 10) {{
            for (int j = 0; j < WIDE; j++) AT(i, j) = in[blockIdx.x * 512 + i * WIDE + j];
            i++;
        }}
    }}
    __syncthreads();
    {SHOW}
"""
PIXELS = f"""
    __shared__ float s[200];
    {LINE}
    if (threadIdx.x == 0) {{
        if (threadIdx.y == 0) {{
            for (int i = 0; i < 5; i++)
                for (int j = 0; j < 13; j++) {{
                    for (int c = 0; c < 3; c++) s[(i * 13 + j) * 3 + c] = in[j + c];
                    s[(i * 13 + j) * 3 + 1] += 2.0f;
                }}
            for (int i = 195; i < 200; i++) s[i] = i;
        }}
    }}
    __syncthreads();
    {SHOW}
"""
ANY_BLOCK = """
    __shared__ float s[256];
    if (threadIdx.x == 0) {
        for (int i = 0; i < blockDim.x; i++)
            s[i] = in[blockIdx.x * 512 + i];
    }
    __syncthreads();
    out[blockIdx.x * 512 + threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
"""
SIZED = """
    int tid = threadIdx.x;
    if (tid == 0 && w > 1) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < w; j++)
                out[blockIdx.x * 512 + i * w + j] = in[j] * 2.0f + i;
    }
"""
SECTIONS = {
    "nest": kernel(NEST), "linear id": kernel(PLAIN), "two dimensions": kernel(TWO_DIMENSIONS),
    "turns": kernel(TURNS, block="32"), "results": kernel(RESULTS, block="64"), "several": kernel(SEVERAL, block="64"),
    "last thread": kernel(LAST, block="64"), "branches": kernel(BRANCHES, block="64"),
    "global id": kernel(GLOBAL_ID, block="64"), "pixels": kernel(PIXELS), "any block": kernel(ANY_BLOCK, block='"n"'),
    "sized": kernel(SIZED, block="64"),
    "macros": kernel(
        MACROS, shared="800",
        head="#define WIDE 20\n#define AT(i, j) s[(i) * WIDE + (j)]\n#define FIRST (threadIdx.x == 0 && !threadIdx.y)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_all_threads_do_what_one_did(name: str, subject_from, runner) -> None:
    subject, action = subject_from(SECTIONS[name]), ShareSection()
    moves = list(action.moves(subject))
    assert moves
    assert all(m.gain > 1.05 for m in moves)
    for move in moves:
        changed = action.apply(subject, move)
        assert changed.plan == subject.candidate.plan
        runner.check(subject, changed, *SIZES)
        assert runner.faults(changed, subject.contract, SIZES[1]) == []


def test_the_whole_nest_is_dealt_out_and_neighbours_touch_neighbours(subject_from, apply_move) -> None:
    subject = subject_from(SECTIONS["nest"])
    inner = apply_move(ShareSection(), subject, "[order=inner]").source
    assert "for (int turn = thread_in_block; turn < 200; turn += 32)" in inner
    assert "const int j = turn % 20;" in inner
    assert "const int i = turn % 10;" in apply_move(ShareSection(), subject, "[order=outer]").source


def test_all_meet_where_order_counts_and_nowhere_else(subject_from, apply_move) -> None:
    for name, barriers in (("nest", 1), ("several", 3), ("results", 1), ("branches", 1), ("pixels", 1)):
        source = apply_move(ShareSection(), subject_from(SECTIONS[name]), "[order=inner]").source
        assert source.count("__syncthreads") == barriers, name


def test_what_the_thread_itself_writes_next_comes_after_a_barrier(subject_from, apply_move, runner) -> None:
    text = PLAIN.replace("__syncthreads();", "if (t == 0) s[w / 2] = 5.0f;\n    s[0] = 1.0f;\n    __syncthreads();")
    subject = subject_from(kernel(text))
    changed = apply_move(ShareSection(), subject, "[order=inner]")
    assert changed.source.count("__syncthreads") == 2
    runner.check(subject, changed, *SIZES)


def test_the_other_conditions_are_told_the_thread(subject_from, apply_move, runner) -> None:
    clear = "for (int m = t; m < 200; m += 32) s[m] = 0.0f;\n    __syncthreads();\n"
    text = PLAIN.replace("if (t == 0)", f"{clear}    if (t == 0 && in[t] > 0.0f && w - t > in[threadIdx.x])")
    subject = subject_from(kernel(text))
    changed = apply_move(ShareSection(), subject, "[order=inner]")
    assert "in[t_one] > 0.0f && w - t_one > in[0u]" in changed.source
    runner.check(subject, changed, *SIZES)


def test_short_loops_go_on_at_once_in_other_warps(subject_from, apply_move, runner) -> None:
    text = """
    __shared__ float s[64];
    int tid = threadIdx.x;
    if (tid == 0) {
        for (int i = 0; i < 32; i++) s[i] = in[i];
        for (int i = 0; i < 32; i++) s[32 + i] = in[blockIdx.x * 512 + i];
    }
    __syncthreads();
    out[blockIdx.x * 512 + tid] = s[tid];
"""
    subject = subject_from(kernel(text, block="64"))
    changed = apply_move(ShareSection(), subject, "[order=inner]")
    assert "(thread_in_block + 32) % 64" in changed.source
    runner.check(subject, changed, *SIZES)


def test_the_more_threads_wait_the_more_is_promised(subject_from) -> None:
    few, many = (subject_from(kernel(PLAIN, block=block)) for block in ("[8, 2]", "[8, 8]"))
    assert max(m.gain for m in ShareSection().moves(few)) < max(m.gain for m in ShareSection().moves(many))


LOOP = "for (int i = 0; i < 200; i++) s[i] = in[blockIdx.x * 512 + i];"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LINE, f"{LINE} if (t == 7) return;"),
        (LINE, f"{LINE} if (in[t] > 1.0f) return;"),
        (LINE, f"{LINE} while (in[t] > 1.0f) {{ if (t < w) return; }}"),
        ("if (t == 0) {", "if (threadIdx.x == 0) {"),  # a thread of each row
        ("if (t == 0) {", "if (t == w) {"),  # it may not be there
        ("if (t == 0) {", "if (t == 0 && out[t] > 0.0f) {"),  # others may write it meanwhile
        ("if (t == 0) {", "if (t < 32) if (t - 1 == 0 || t == 0) {"),
        ("__syncthreads();", ""),
        ("__syncthreads();", "__syncwarp();"),
        ("__syncthreads();", "float early = s[t]; __syncthreads(); out[t] = early;"),
        ("s[i] = in", "s[i] = i > 0 ? s[i - 1] : in"),
        ("s[i] = in", "s[199 - i] = s[i] + in"),
        ("s[i] = in", "s[i / 2] = in"),
        ("s[i] = in", "s[i % 8] = in"),
        ("s[i] = in", "s[0] = in"),
        ("s[i] = in", "s[(int)in[i]] = in"),
        ("s[i] = in", "if (in[i] < 0.0f) break; s[i] = in"),
        ("s[i] = in", "if (in[i] < 0.0f) return; s[i] = in"),
        ("s[i] = in", "if (in[i] < 0.0f) continue; out[blockIdx.x * 512 + w] = s[i] = in"),
        ("i < 200; i++", "i < 200 && in[i] > 0.0f; i++"),
        ("i < 200; i++", "i < 200; i += 1 + (in[i] > 0.0f)"),
        (LOOP, f"int k = 0; {LOOP.replace('s[i]', 's[k++]')}"),
        (LOOP, f"int k = 0; {LOOP.replace('s[i] =', 'k += 3; s[k / 3] =')}"),
        (LOOP, f"float last = 0.0f; {LOOP.replace('s[i] =', 'last += in[i]; s[i] = last +')}"),
        (LOOP, f"float mine = in[t + w]; mine += 1.0f; {LOOP.replace('= in', '= mine + in')}"),
        (LOOP, "for (int i = 0; i < 10; i++) for (int j = 0; j < 20; j++) s[i * 19 + j] = in[i + j];"),
        (LOOP, "for (int i = 0; i < 10; i++) for (int j = 0; j < 19; j++) s[i + j] = in[i + j];"),
        (LOOP, f"asm volatile(\"\"); {LOOP}"),
        (LOOP, LOOP.replace("s[i] =", "__syncwarp(1); s[i] =")),
        (f"{LINE}\n", f"{LINE}\n s[(t + 1) % 32] = in[t]; float m = in[t]; m += 1.0f;\n"),
    ],
)  # fmt: skip
def test_no_move_where_order_or_threads_would_tell(old: str, new: str, subject_from) -> None:
    assert old in PLAIN
    text = PLAIN.replace(old, new)
    if "m += 1.0f" in text:  # what others wrote, with no barrier between
        text = text.replace("s[i] = in", "out[blockIdx.x * 512 + i] = s[i % 32] + in")
    assert list(ShareSection().moves(subject_from(kernel(text)))) == []


@pytest.mark.parametrize(
    "around",
    [
        "if (t % 2 == 0 && in[t] > 0.0f) {{ {0} }}",
        "for (int m = t; m < 64; m += w) {{ {0} }}",
        "for (int m = 0; m < 4; m++) {{ if (in[t + m] > 1.0f) break; {0} }}",
        "for (int m = 0; m < 4; m++) {{ {0} if (in[t + m] > 1.0f) break; }}",
        "while (s[199] < 3.0f) {{ {0} }}",
        "float v = in[t]; while (v < 3.0f) {{ {0} v += 1.0f; }}",
    ],
)
def test_no_move_where_single_threads_come(around: str, subject_from) -> None:
    section = f"if (t == 0) {{ {LOOP} }} __syncthreads();"
    head, tail = PLAIN.split("if (t == 0)")[0], SHOW
    whole = head + around.format(section) + tail
    assert list(ShareSection().moves(subject_from(kernel(whole)))) == []
    assert list(ShareSection().moves(subject_from(kernel(head + section + tail)))) != []


def test_no_move_where_buffers_may_overlap_or_memory_is_volatile(subject_from) -> None:
    over = "for (int i = 0; i < 64; i++) out[blockIdx.x * 512 + i] = in[blockIdx.x * 512 + i + 1];"
    apart = kernel(f"if (threadIdx.x == 0) {{ {over} }}", block="64")
    assert list(ShareSection().moves(subject_from(apart)))
    joined = apart.replace("// [sizes]", '// aliasing = [["in", "out"]]\n// [sizes]')
    assert list(ShareSection().moves(subject_from(joined))) == []
    volatile = kernel(PLAIN.replace("__shared__ float", "volatile __shared__ float"))
    assert list(ShareSection().moves(subject_from(volatile))) == []
