"""A kernel is a domain only when its threads are nothing but points, however ids and guards are written."""

from __future__ import annotations

import pytest

from fsr.analysis.domain import Domain, domain, flattened
from fsr.analysis.functions import thread_aware
from fsr.analysis.guards import structured
from fsr.analysis.macros import constants, expanded
from fsr.records import Launch
from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.parse import parse_kernels


def found(
    body: str, *, before: str = "", block: tuple[str, str, str] = ("16", "16", "1"), entry: str = "k"
) -> Domain | None:
    source = f"{before}\n__global__ void k(const float *a, float *o, int w, int h) {{\n{body}\n}}\n"
    form = parse_kernels(source)["k"]
    launch = Launch(entry, ("ceil_div(w, 16)", "ceil_div(h, 16)", "1"), block, "0", ("a", "o", "w", "h"))
    return domain(expanded(form, source), launch, constants(source, form, entry))


IDS = "int x = blockIdx.x * blockDim.x + threadIdx.x; int y = blockIdx.y * blockDim.y + threadIdx.y;"


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        "const int y = threadIdx.y + blockDim.y * blockIdx.y; const int x = threadIdx.x + (blockIdx.x << 4);",
        "int tx = threadIdx.x, ty = threadIdx.y; int x0 = blockIdx.x * 16; int x = x0 + tx, y = blockIdx.y * 16 + ty;",
        "auto t = 0; int x = (int)(blockIdx.x * blockDim.x) + (int)threadIdx.x; int y = GY;",
    ],
)
@pytest.mark.parametrize(
    "guard",
    [
        "if (x >= w || y >= h) return; CORE",
        "if (x < w && y < h) { CORE }",
        "if (!(x < w)) return; if (h <= y) return; CORE",
        "if (w > x) { if (y <= h - 1) { CORE } }",
        "int limit = w; if (x < limit) if (y < h) CORE",
    ],
)
def test_ids_and_guards_in_any_form(ids, guard):
    text = f"{ids} {guard.replace('CORE', 'o[y * w + x] = a[x * h + y];')}"
    one = found(text, before="#define GY (blockIdx.y * blockDim.y + threadIdx.y)")
    assert one is not None
    assert (one.axes["x"].var, one.axes["y"].var) == ("x", "y") or "GY" in text
    assert {a: axis.extent.text() for a, axis in one.axes.items() if axis.extent} == {"x": "w", "y": "h"}
    assert "o[" in emit_stmts(one.core)
    assert "threadIdx" not in emit_stmts((*one.uniform, *one.core))


def test_what_is_no_bound_stays_in_the_core():
    one = found(IDS + " if (x >= w || a[y] > 0.0f || y == 3) return; o[y * w + x] = 1.0f;")
    assert one is not None
    assert [emit_expr(c) for c in one.axes["x"].inside] == ["x < w"]
    assert one.axes["y"].inside == ()
    assert emit_stmts(one.core).startswith("if (!(a[y] > 0.0f) && y != 3)")


def test_returns_inside_the_core_become_else():
    one = found(IDS + " if (x >= w || y >= h) return; if (x == 0) { o[y] = 0; return; } o[y * w + x] = 1;")
    assert one is not None
    assert "return" not in emit_stmts(one.core)
    assert "} else {" in emit_stmts(one.core)


@pytest.mark.parametrize(
    "body",
    [
        IDS + " __shared__ float s[16]; s[threadIdx.x] = a[x]; __syncthreads(); o[y * w + x] = s[0];",
        IDS + " o[y * w + x] = a[x + threadIdx.x];",
        IDS + " o[y * w + x] = a[x + gridDim.x];",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < w; i += blockDim.x * gridDim.x) o[i] = a[i];",
        IDS + ' asm("bar.sync 0;"); o[y * w + x] = a[x];',
        IDS + " for (int i = 0; i < w; i++) { if (a[i] > 0) return; o[y * w + x] = i; }",
        "int x = blockIdx.x * 32 + threadIdx.x; o[x] = a[x];",  # blocks of 16 threads
    ],
)
def test_threads_that_are_more_than_points_have_no_domain(body):
    assert found(body) is None


def test_a_variable_that_starts_as_an_id_and_moves_is_no_id():
    one = found(IDS + " x += 1; o[y * w + x] = a[x];")
    assert one is not None
    assert one.axes["x"].var == "fsr_x"
    assert "int x = fsr_x;" in emit_stmts((*one.uniform, *one.core))


def test_a_flat_id_taken_apart_is_two_dimensional():
    text = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= w * h) return;"
    text += "int r = i / w, c = i % w; o[c * h + r] = a[i];"
    one = found(text, block=("256", "1", "1"))
    assert one is not None
    two = flattened(one)
    assert two is not None
    assert {a: (x.var, x.extent.text()) for a, x in two.axes.items() if x.extent} == {"y": ("r", "h"), "x": ("c", "w")}
    assert flattened(found(text.replace("w * h", "w + h"), block=("256", "1", "1"))) is None


def test_template_arguments_and_constants_are_numbers():
    source = "#define P 4\nconstexpr int Q = 0x10;\n"
    source += "template <int B, typename T> __global__ void k(T *a) { a[0] = B; }\n"
    form = parse_kernels(source)["k"]
    assert constants(source, form, "k<64, float>") == {"P": 4, "Q": 16, "B": 64}


def test_helpers_that_look_at_their_thread_are_known():
    source = """
    #define MINE lane()
    __device__ int lane() { return threadIdx.x % 32; }
    __device__ float sum(float x) { return __shfl_xor_sync(~0u, x, 1) + x; }
    __device__ float twice(float x) { return 2 * x; /* as threadIdx.x does */ } // no __shared__ here
    __device__ float deeper(float x) { return sum(twice(x)) + MINE; }
    """
    aware = thread_aware(source)
    assert {"MINE", "lane", "sum", "deeper"} <= aware
    assert "twice" not in aware


def test_a_return_inside_what_comes_last_ends_no_more_than_its_branch():
    def told(body: str) -> str | None:
        (kernel,) = parse_kernels(f"__global__ void k(float *y, int i, int n) {{ {body} }}").values()
        found = structured(kernel.body)
        return None if found is None else " ".join(emit_stmts(found).split())

    nested = told("if (i < n) { if (y[i] == 0) { y[i] = 1; return; } y[i] = 2; }")
    assert nested == "if (i < n) { if (y[i] == 0) { y[i] = 1; } else { y[i] = 2; } }"
    assert told("if (i < n) { if (y[i] == 0) { y[i] = 1; return; } y[i] = 2; } y[0] = 3;") is None
