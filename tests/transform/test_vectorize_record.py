"""What a thread reads or writes side by side, in one access."""

from __future__ import annotations

import pytest

from fsr.transform.vector.record import VectorizeRecord

HEAD = """
// /// fsr
// [sizes]
// n = {min = 0, max = 4096, timed = 1024}
//
// [args]
// q = {role = "in", shape = ["n", 4]}
// out = {role = "inout", shape = ["n", 4]}
//
// [launch]
// grid = "ceil_div(n, 128)"
// block = 128
// ///
"""
TEXT = (
    HEAD
    + """
__global__ void turn(const float *q, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float w = q[4 * i], x = q[4 * i + 1], y = q[4 * i + 2], z = q[4 * i + 3];
    float s = 1.0f / (1.0f + w * w + x * x + y * y + z * z);
    out[4 * i] = w * s;
    out[4 * i + 1] = -x * s;
    out[4 * i + 2] = -y * s;
    out[4 * i + 3] = -z * s;
}
"""
)
SIZES = [{"n": n} for n in (0, 1, 3, 64, 130, 517)]


def _moves(subject) -> set[str]:
    return {m.name.split("[")[1].rstrip("]") for m in VectorizeRecord().moves(subject)}


@pytest.mark.parametrize("alignment", [4, 16])
@pytest.mark.parametrize("what", ["all", "reads", "writes"])
@pytest.mark.parametrize("most", [8, 16])
def test_records_at_any_alignment(subject_from, apply_move, close_outputs, alignment, what, most):
    subject = subject_from(TEXT)
    changed = apply_move(VectorizeRecord(), subject, f"[bytes={most},what={what}]")
    assert f"fsr_pack<float, {most // 4}>" in changed.source
    close_outputs(subject, changed, SIZES, alignment=alignment)


def test_what_is_promised_is_not_asked(subject_from, apply_move):
    text = TEXT.replace('["n", 4]}', '["n", 4], alignment = 16}')
    changed = apply_move(VectorizeRecord(), subject_from(text), "[bytes=16,what=all]")
    assert "fsr_aligned<16>(q)" not in changed.source


@pytest.mark.parametrize("how", ["q += 4 * i; out += i * 4;", "q = q + i * 4; out += 4 * i;"])
def test_parameters_that_are_moved_to_the_threads_record(subject_from, apply_move, close_outputs, how):
    text = TEXT.replace("4 * i + ", "").replace("[4 * i]", "[0]").replace("float w", f"{how} float w")
    subject = subject_from(text)
    changed = apply_move(VectorizeRecord(), subject, "[bytes=16,what=all]")
    close_outputs(subject, changed, SIZES, alignment=4)
    again = text.replace("out[3] =", "out += n - n; out[3] =")
    assert not {m for m in _moves(subject_from(again)) if m.endswith("writes")}


PLACES = {
    "in place": """
    out[4 * i] *= 2.0f; out[4 * i + 1] *= 3.0f; out[4 * i + 2] += q[4 * i]; out[4 * i + 3] -= out[4 * i + 2];""",
    "a swap": """
    float a = out[4 * i]; out[4 * i] = out[4 * i + 3]; float b = out[4 * i + 1]; out[4 * i + 1] = out[4 * i + 2];
    out[4 * i + 2] = b; out[4 * i + 3] = a;""",
    "three of four": "float l = q[4 * i] + q[4 * i + 1] * q[4 * i + 2]; out[4 * i] = l;",
    "a pointer": """
    const float *row = q + 4 * i; float *to = out + 4 * i;
    to[0] = row[3]; to[1] = row[2]; to[2] = row[1]; to[3] = row[0];""",
    "loads with a hint": """
    out[4 * i] = __ldg(&q[4 * i]) + __ldg(&q[4 * i + 1]) + __ldg(q + 4 * i + 2) + __ldg(&q[4 * i + 3]);""",
    "steps": """
    for (int at = 4 * i; at < 4 * n; at += 4 * blockDim.x * gridDim.x) {
        float a = q[at] + q[at + 1], b = q[at + 2] - q[at + 3];
        out[at] = a; out[at + 1] = b; out[at + 2] = a * b; out[at + 3] = a + b;
    }""",
    "a stride that goes on": """
    unsigned at = 4 * i;
    for (;;) {
        out[at] = q[at] + 1.0f; out[at + 1] = q[at + 1]; out[at + 2] = q[at + 2]; out[at + 3] = q[at + 3] * 2.0f;
        at += 4 * gridDim.x * blockDim.x;
        if (at >= 4 * n) break;
    }""",
    "conditions": """
    if (q[4 * i] > 0.0f) {
        float a = q[4 * i + 1], b = q[4 * i + 2];
        out[4 * i] = a; out[4 * i + 1] = b; out[4 * i + 2] = q[4 * i] + q[4 * i + 3]; out[4 * i + 3] = a * b;
    } else {
        out[4 * i + 3] = q[4 * i];
    }""",
}


@pytest.mark.parametrize("body", list(PLACES.values()), ids=list(PLACES))
def test_records_as_they_are_written(subject_from, close_outputs, body):
    start = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;"
    subject = subject_from(f"{HEAD}__global__ void turn(const float *q, float *out, int n) {{ {start} {body} }}")
    moves = list(VectorizeRecord().moves(subject))
    assert moves
    for move in moves:
        changed = VectorizeRecord().apply(subject, move)
        assert "reinterpret_cast" in changed.source
        close_outputs(subject, changed, SIZES, alignment=4)


WIDE = "fsr_pack<float, 4> out_to"


@pytest.mark.parametrize(
    ("why", "old", "new"),
    [
        ("a test before one", "out[4 * i + 2] = -y * s;", "if (s > 0.5f) out[4 * i + 2] = -y * s;"),
        ("a read between of what is written", "out[4 * i + 2] = -y * s;", "out[4 * i + 2] = -y * s + out[4 * i];"),
        ("a read between at another place", "out[4 * i + 2] = -y * s;", "out[4 * i + 2] = -y * s + 0.0f * out[0];"),
        ("a barrier between", "out[4 * i + 2] = -y * s;", "__syncwarp(); out[4 * i + 2] = -y * s;"),
        ("a way out between", "out[4 * i + 2] = -y * s;", "if (s > 0.5f) return; out[4 * i + 2] = -y * s;"),
        ("an index that goes on", "out[4 * i + 1] = -x * s;", "i += 0; out[4 * i + 1] = -x * s;"),
        ("an element that is written twice", "out[4 * i + 1] = -x * s;", "out[4 * i] = -x * s;"),
        ("volatile elements", "float *out", "volatile float *out"),
    ],
)
def test_no_whole_record_is_written_with(subject_from, close_outputs, why, old, new):
    assert old in TEXT
    subject = subject_from(TEXT.replace(old, new))
    for move in VectorizeRecord().moves(subject):
        changed = VectorizeRecord().apply(subject, move)
        assert WIDE not in changed.source, why
        close_outputs(subject, changed, SIZES[:4], alignment=4)
    assert WIDE in next(VectorizeRecord().apply(whole, m) for whole in [subject_from(TEXT)]
                        for m in VectorizeRecord().moves(whole)).source  # fmt: skip


def test_neighbours_of_other_threads_are_no_record(subject_from):
    body = "int i = threadIdx.x; out[i] = q[i] + q[i + 1] + q[i + 2] + q[i + 3];"
    assert not _moves(subject_from(f"{HEAD}__global__ void turn(const float *q, float *out, int n) {{ {body} }}"))


def test_three_elements_are_no_pack_where_the_buffer_may_end(subject_from):
    text = TEXT.replace("z = q[4 * i + 3]", "z = 0.0f")
    text = text.replace('q = {role = "in", shape = ["n", 4]}', 'q = {role = "in", shape = ["4 * n - 1 + (n == 0)"]}')
    subject = subject_from(text)
    made = [VectorizeRecord().apply(subject, m).source for m in VectorizeRecord().moves(subject)]
    assert made
    assert not any("fsr_pack<float, 4> q_v" in one for one in made)


def test_shared_memory_of_callers_is_left_alone(subject_from):
    text = TEXT.replace("// [sizes]", '// aliasing = [["q", "out"]]\n// [sizes]')
    assert not _moves(subject_from(text))
