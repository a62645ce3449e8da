"""tile-threads: several threads' work in one, from tiles that a block loads together, gives what each gave, whatever is
computed of the lines and however the kernel is written; no move where lines are not shared so, or may be written."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from fsr.source.parse import parse_kernels
from fsr.transform.inlining.action import Inlining
from fsr.transform.tiles.action import TileThreads

SIZES = [{"m": m, "n": n, "k": k} for m, n, k in [(1, 1, 1), (33, 70, 5), (64, 64, 32), (17, 130, 19), (40, 3, 33)]]
RAGGED = """
// m = {min = 1, max = 2048, timed = 2048}
// n = {min = 1, max = 2048, timed = 2048}"""
WHOLE = """
// mt = {min = 1, max = 64, timed = 64}
// nt = {min = 1, max = 64, timed = 64}
// m = "32 * mt"
// n = "32 * nt\""""
LANES = {"float2": 2, "float4": 4, "Complex": 2, "cuFloatComplex": 2}


@dataclass(frozen=True)
class Case:
    """A kernel of ``m`` rows and ``n`` columns. ``before``, ``turn`` and ``after``: statements around and in the loop;
    ``A0``, ``B0`` and so on are what lies at ``left`` and ``right``, and behind it; ``Be``: e behind it."""

    type: str = "float"
    width: int = 1
    left: str = "(i * k + t) * W"
    right: str = "(j * k + t) * W"
    before: str = "float s = 0.0f;"
    turn: str = "s += A0 * B0;"
    after: str = "c[i * n + j] = s;"
    block: tuple[int, int] = (16, 16)
    guard: str = "if (i >= m || j >= n) return; BODY"
    ids: str = "int i = blockIdx.y * blockDim.y + threadIdx.y; int j = blockIdx.x * blockDim.x + threadIdx.x;"
    loop: str = "for (int t = 0; t < k; ++t)"
    out: str = "float"
    file: str = ""
    sizes: str = RAGGED
    a: str = "a[]"

    @property
    def body(self) -> str:
        """What a thread does, without what stands around it."""
        turn, width = self.turn, str(1 if self.type in LANES else self.width)
        for c in (*range(int(width)), "e"):
            for name, layout, form in (("A", self.left, self.a), ("B", self.right, self.a.replace("a", "b"))):
                at = layout.replace(" * W", "" if width == "1" else f" * {width}") + (f" + {c}" if c else "")
                element = form.replace("[]", f"[{at}]") if "[]" in form else form.replace("AT", at)
                turn = turn.replace(f"{name}{c}", element)
        return f"{self.before}\n    {self.loop} {{\n        {turn}\n    }}\n    {self.after}"

    def text(self) -> str:
        """The kernel with its contract."""
        width = LANES.get(self.type, self.width)
        more = f", {width}" if width > 1 else ""
        x, y = self.block
        return f"""
// /// fsr
// entry = "pairs"
// [sizes]{self.sizes}
// k = {{min = 1, max = 1024, timed = 512}}
// [args]
// a = {{role = "in", shape = ["m", "k"{more}]}}
// b = {{role = "in", shape = ["n", "k"{more}]}}
// w = {{role = "in", shape = ["m + n + k"]}}
// c = {{role = "inout", shape = ["m", "n"]}}
// [launch]
// grid = ["ceil_div(n, {x})", "ceil_div(m, {y})"]
// block = [{x}, {y}]
// ///
{self.file}
__global__ void pairs(const {self.type} *a, const {self.type} *b, const float *w, {self.out} *c, int m, int n, int k)
{{
    {self.ids}
    {self.guard.replace("BODY", self.body)}
}}
"""


COLUMNS = {"left": "(t * m + i) * W", "right": "(t * n + j) * W"}
COMPLEX = {
    "width": 2,
    "before": "float re = 0.0f, im = 0.0f;",
    "turn": "float x = A0, y = A1; re += x * B0 + y * B1; im += x * B1 - y * B0;",
    "after": "c[i * n + j] = re * 2.0f + im;",
}
QUATERNION = {
    "width": 4,
    "before": "float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f}, q[4];",
    "turn": """for (int e = 0; e < 4; ++e) q[e] = Be;
        acc[0] += A0 * q[0] - A1 * q[1] - A2 * q[2] - A3 * q[3];
        acc[1] += A0 * q[1] + A1 * q[0] + A2 * q[3] - A3 * q[2];
        acc[2] += A0 * q[2] - A1 * q[3] + A2 * q[0] + A3 * q[1];
        acc[3] += A0 * q[3] + A1 * q[2] - A2 * q[1] + A3 * q[0];""",
    "after": "c[i * n + j] += acc[0] + 2.0f * acc[1] + 3.0f * acc[2] + acc[3];",
}
BODIES: dict[str, dict[str, object]] = {
    "product": {},
    "distance": {"turn": "float d = A0 - B0; s += d * d;"},
    "in three": {"width": 3, "turn": "float x = A0 - B0, y = A1 - B1, z = A2 - B2; s += x * x + y * y + z * z;"},
    "min-plus": {"before": "float s = 1e30f;", "turn": "s = fminf(s, A0 + B0);"},
    "largest": {"before": "float s = 0.0f; int at = -1;", "after": "c[i * n + j] = s + at;",
                "turn": "float v = A0 * B0; if (v > s) { s = v; at = t; }"},
    "continues": {"before": "int s = 0;", "turn": "float x = A0, y = B0; if (x == y) continue; s += x < y ? 1 : 2;"},
    "hamming": {"type": "int", "before": "int s = 0;", "turn": "s += __popc(A0 ^ B0);"},
    "bytes": {"type": "unsigned char", "before": "int s = 0;", "turn": "int d = (int)A0 - (int)B0; s += abs(d);"},
    "doubles": {"type": "double", "before": "double s = 0.0;", "turn": "s += fabs(A0 - B0);"},
    "halves": {"type": "__half", "file": "#include <cuda_fp16.h>", "turn": "s += __half2float(A0) * __half2float(B0);"},
    "lanes": {"type": "float2", "turn": "float2 x = A0; s += x.x * B0.y - x.y * B0.x;"},
    "complex": COMPLEX,
    "quaternion": QUATERNION,
    "means": {"turn": "s += (A0 - w[i]) * (B0 - w[m + j]);"},
    "weighted": {"turn": "float d = A0 - B0; s += w[m + n + t] * d * d;"},
    "remainder": {"type": "int", "before": "int s = 0;", "turn": "int x = A0, d = B0; if (d != 0) s += x % d;"},
    "norms": {"before": "const float own = w[i], other = w[m + j]; float s = own;",
              "after": "c[i * n + j] = s + own * other;"},
    "conditions": {"turn": "if (t % 3 == 1) continue; float x = A0; s += x > 0.0f ? x * B0 : 1.0f;"},
    "function": {"file": "__device__ float kernel(float x, float y) { float d = x - y; return d * d + 1.0f; }",
                 "turn": "s += kernel(A0, B0);"},
    "four a turn": {"left": "i * 4 * k + t", "right": "j * 4 * k + t", "loop": "for (int t = 0; t < 4 * k; t += 4)",
                    "turn": "s += A0 * B3 + A1 * B2 - A2 * B1 + A3 * B0;", "width": 4},
    "records": {"file": "struct Complex { float re, im; };", "type": "Complex", "width": 2,
                "turn": "Complex p = A0; s += p.re * B0.im - p.im * B0.re;"},
    "complex numbers": {"file": "#include <cuComplex.h>", "type": "cuFloatComplex", "width": 2,
                        "before": "cuFloatComplex s = make_cuFloatComplex(0.0f, 0.0f);",
                        "turn": "s = cuCaddf(s, cuCmulf(A0, cuConjf(B0)));",
                        "after": "c[i * n + j] = cuCrealf(s) + 2.0f * cuCimagf(s);"},
    "behind a half": {"before": "const int half = k / 2; float s = 0.0f;", "loop": "for (int t = half; t < k; ++t)",
                      "turn": "s += (A0 - w[t - half]) * B0 + half;"},
    "by macros": {"file": "#define SQUARE(v) ((v) * (v))\n#define AT(p, r, t) (p)[(r) * k + (t)]",
                  "turn": "s += SQUARE(AT(a, i, t) - AT(b, j, t));"},
    "rows": {"before": "const float *mine = &a[i * k], *other = b + j * k; float s = 0.0f;",
             "turn": "s += mine[t] * other[t];"},
    "moved": {"before": "a += i * k; b += j * k; float s = 0.0f;", "turn": "s += a[t] * b[t];"},
    "sweeps": {"before": "float s = 0.0f; for (int q = 0; q < 3; ++q) s += w[q % k];",
               "after": "for (int q = 0; q < 2; ++q) s = s * 0.5f + q; c[i * n + j] = s;"},
    "result": {"file": """template <typename T> __device__ T far(const T *x, const T *y, int k)
{ T s = 0; for (int t = 0; t < k; ++t) { T d = x[t] - y[t]; s += d * d; } return s; }""",
               "loop": "", "before": "", "after": "",
               "turn": "c[i * n + j] = 2.0f * far<float>(a + i * k, b + j * k, k);"},
    "given lines": {"width": 2, "turn": "s += cross(a + (i * k + t) * 2, b + (j * k + t) * 2);", "file":
                    "__device__ float cross(const float *x, const float *y) { return x[0] * y[1] - x[1] * y[0]; }"},
}  # fmt: skip
WAYS: dict[str, dict[str, object]] = {
    "as it is": {},
    "columns": COLUMNS,
    "a row and a column": {"right": "(t * n + j) * W"},
    "nested": {"guard": "if (i < m) { const int row = i; if (j < n) { BODY } }"},
    "a triangle": {"guard": "if (i >= m || j >= n || i > j) return; BODY"},
    "a flag": {"guard": "const bool inside = i < m && j < n; if (inside) { BODY }"},
    "whole blocks": {"guard": "BODY", "sizes": WHOLE},
    "wide": {"block": (32, 8)},
    "flat": {"block": (256, 1), "ids": "int i = blockIdx.y; int j = blockIdx.x * 256 + threadIdx.x;"},
    "tall": {"block": (8, 16)},
    "swapped": {"ids": "int j = blockIdx.x * blockDim.x + threadIdx.x; const unsigned i = blockIdx.y * 16 + "
                       "threadIdx.y;",
                "guard": "if (j >= n) return; if (i >= (unsigned)m) return; BODY"},
    "sizes": {"loop": "for (size_t t = 0; t < (size_t)k; t++)",
              "ids": "const size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x; const size_t i = "
                     "blockIdx.y * blockDim.y + threadIdx.y;"},
    "loads": {"a": "__ldg(a + AT)"},
    "up to": {"loop": "for (int t = 1; t <= k - 1; ++t)"},
}  # fmt: skip


def cases() -> list[tuple[str, str]]:
    """Each body and each way once, and some others, the same ones each time."""
    chance, bodies, ways = random.Random(7), list(BODIES), list(WAYS)
    found = [(body, "as it is") for body in bodies] + [("distance", way) for way in ways[1:]]
    return found + [(chance.choice(bodies), chance.choice(ways[1:])) for _ in range(12)]


def case(body: str, way: str) -> Case:
    return replace(Case(), **{**BODIES[body], **WAYS[way]})  # type: ignore[arg-type]


@pytest.mark.parametrize(("body", "way"), dict.fromkeys(cases()))
def test_every_thread_gives_what_it_gave(body: str, way: str, subject_from, runner) -> None:
    made = case(body, way)
    subject, action = subject_from(made.text()), Inlining(TileThreads())
    moves = list(action.moves(subject))
    assert 0 < len(moves) <= 6, made.text()
    sizes = SIZES if made.sizes == RAGGED else [{"mt": 1, "nt": 1, "k": 1}, {"mt": 3, "nt": 2, "k": 35}]
    for move in random.Random(body + way).sample(moves, min(len(moves), 2)):
        changed = action.apply(subject, move)
        assert parse_kernels(changed.source)
        assert "__shared__" in changed.source
        runner.check(subject, changed, *sizes)
        if way in ("as it is", "nested"):
            assert runner.faults(changed, subject.contract, {"m": 19, "n": 37, "k": 18}) == []


PLAIN = Case(turn="float x = A0, y = B0; s += x * y;")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t < k", "t < k - i"),  # a loop that depends on the thread
        ("t < k", "t < (int)w[0]"),
        ("int t = 0", "int t = j & 1"),
        ("++t", "t *= 2"),
        ("++t", "t += n"),
        ("s += x * y;", "s += x * y; if (s > 100.0f) break;"),
        ("s += x * y;", "if (x > y) t++; s += x * y;"),
        ("s += x * y;", "c[i * n + j] = s; s += x * y;"),  # writes in the loop
        ("s += x * y;", "atomicAdd(&c[i * n + j], x * y);"),
        ("s += x * y;", "s += x * y * c[i * n + j];"),  # what the kernel writes
        ("s += x * y;", "s += x * y * w[(i + j + t) % n];"),
        ("b[(j * k + t)]", "b[(j * k + t + i)]"),  # of both axes
        ("b[(j * k + t)]", "b[(i * k + t)]"),  # of one axis alone
        ("b[(j * k + t)]", "b[((int)x * k + t)]"),  # where the data says
        ("b[(j * k + t)]", "b[(j * t)]"),  # lines that are no lines
        ("b[(j * k + t)]", "(t + 1 < k ? b[(j * k + t) + 1] : 0.0f)"),  # behind a condition, there may be no element
        ("i >= m || j >= n", "i + j >= m || j >= n || i >= n + 1"),  # tests that do not tell which lines there are
        ("i >= m ||", "i >= m || w[i] < 0.0f ||"),  # a test of data
        ("float s = 0.0f;", "float s = 0.0f; __syncthreads();"),
        ("float s = 0.0f;", "__shared__ float s; s = 0.0f;"),
        ("float s = 0.0f;", "volatile float s = 0.0f;"),
        ("float s = 0.0f;", "float s = gridDim.x;"),
        ("float s = 0.0f;", "auto s = w[0];"),
        ("s += x * y;", "bins[(int)x & 3] += y; s += bins[0];"),  # an array that is indexed by data
        ("s += x * y;", 's += x * y; asm volatile("");'),
        ("s += x * y;", "counter += 1; s += x * y;"),
        ("s += x * y;", "s += x * y + tell(t);"),
        ("c[i * n + j] = s;", "c[i * n + j] = s; a_[i] = s;"),  # an operand, by another name
    ],
)  # fmt: skip
def test_no_move_where_lines_are_not_shared_or_threads_cooperate(old: str, new: str, subject_from) -> None:
    text = PLAIN.text()
    assert old in text
    assert list(TileThreads().moves(subject_from(text)))
    file = "__device__ int counter;\n__device__ int tell(int t) { counter = t; return t; }\n__global__"
    text = text.replace(old, new).replace("__global__", file)
    text = text.replace("float s = 0.0f;", "float s = 0.0f, bins[4] = {0};") if "bins" in new else text
    if "a_" in new:
        text = text.replace("float s = 0.0f;", "float s = 0.0f; float *a_ = (float *)a;")
    assert list(Inlining(TileThreads()).moves(subject_from(text))) == []


def changed(made: Case, subject_from, ending: str) -> tuple[str, object]:
    subject, action = subject_from(made.text()), TileThreads()
    (move,) = [m for m in action.moves(subject) if m.name.endswith(ending)]
    candidate = action.apply(subject, move)
    return candidate.source, candidate.plan.launches[0]


def test_lines_of_a_thread_are_neighbours_in_tiles(subject_from) -> None:
    text, launch = changed(PLAIN, subject_from, "[y=4,x=4,turns=16]")
    assert "__shared__ __align__(16) float a_tile[16][64 + 4];" in text
    assert "float s[4][4] = {};" in text
    assert "float x = a_tile[step][threadIdx.y * 4 + u];" in text
    assert "float y = b_tile[step][threadIdx.x * 4 + v];" in text
    assert launch.grid == ("ceil_div(ceil_div(n, 16), 4)", "ceil_div(ceil_div(m, 16), 4)", "1")
    turn = text[text.index("for (int step") :]
    assert "if (" not in turn[: turn.index("__syncthreads")]  # what a thread that is not there adds up harms nobody


def test_what_may_do_harm_is_under_the_tests(subject_from) -> None:
    text, _ = changed(case("remainder", "as it is"), subject_from, "[y=4,x=4,turns=16]")
    turn = text[text.index("for (int step") :]
    assert "if (i < m && j < n)" in turn[: turn.index("__syncthreads")]


def test_threads_beyond_the_grid_are_told_by_the_number_of_blocks(subject_from) -> None:
    text, launch = changed(case("product", "whole blocks"), subject_from, "[y=4,x=4,turns=16]")
    assert "blockIdx.x * 4 + v < blocks_x" in text
    assert [a.value for a in launch.args[-2:]] == ["ceil_div((32 * nt), 16)", "ceil_div((32 * mt), 16)"]


def test_a_weight_that_all_read_is_read_once_a_turn(subject_from) -> None:
    text, _ = changed(case("weighted", "as it is"), subject_from, "[y=4,x=4,turns=16]")
    assert "const float w_value = w[m + n + t];" in text
    text, _ = changed(case("means", "as it is"), subject_from, "[y=4,x=4,turns=16]")
    assert "float w_value[4] = {};" in text  # of a row: its columns have it in common


def test_few_blocks_promise_less(subject_from) -> None:
    def best(text: str) -> dict[tuple[object, object], float]:
        return {(m.param("y"), m.param("x")): m.gain for m in TileThreads().moves(subject_from(text))}

    many, few = best(PLAIN.text()), best(PLAIN.text().replace("timed = 2048", "timed = 256"))
    assert max(many.values()) > 2.0 > 1.1 > few[4, 4]
    assert few[4, 4] < few[2, 2]
    wary = best(case("remainder", "as it is").text())
    assert max(wary.values()) < max(many.values())


def test_no_move_where_operands_may_be_what_is_written(subject_from) -> None:
    aliased = PLAIN.text().replace("// [sizes]", '// aliasing = [["b", "c"]]\n// [sizes]')
    assert list(TileThreads().moves(subject_from(aliased))) == []


def test_no_move_where_the_launch_stays(subject_from) -> None:
    assert list(TileThreads().moves(subject_from(PLAIN.text(), keep_launch=True))) == []


def test_blocks_along_z_and_blocks_of_unknown_size_stay(subject_from) -> None:
    deep = PLAIN.text().replace("// block = [16, 16]", "// block = [8, 8, 4]")
    told = PLAIN.text().replace("// block = [16, 16]", '// block = ["min(n, 16)", 16]')
    assert list(TileThreads().moves(subject_from(deep))) == []
    assert list(TileThreads().moves(subject_from(told))) == []
