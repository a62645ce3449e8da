"""Right and wrong candidates, class by class, judged on the host device as a search and a promotion judge them.

Each original is a contract in a comment and a kernel; each candidate says what is done otherwise. None of the wrong
ones shows at every size or value: that is the point of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.compiling import build
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.records import Candidate, Plan

ELEMENTWISE = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 0, max = 4194304, timed = 1048576}}
// [args]
// x = {{role = "in", shape = ["n"]{constraints}}}
// y = {{role = "out", shape = ["n"]}}
// n = {{value = "n"}}
// [launch]
// grid = "ceil_div(n, 256)"
// block = 256
// ///
"""
ROWS = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 0, max = 65536, timed = 512}
// cols = {min = 1, max = 16384, timed = 256}
// [args]
// x = {role = "in", shape = ["rows", "cols"]}
// y = {role = "out", shape = ["rows"]}
// rows = {value = "rows"}
// cols = {value = "cols"}
// [launch]
// grid = "ceil_div(rows, 64)"
// block = 64
// [tolerance]
// sum_length = "cols"
// ///
"""
EACH = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {} }}"
EACH_ROW = "int r = blockIdx.x * blockDim.x + threadIdx.x; if (r >= rows) return; const {0} *p = x + (size_t)r * cols; "


def elementwise(body: str, kind: str = "float", out: str = "", constraints: str = "") -> str:
    head = ELEMENTWISE.format(constraints=f", {constraints}" if constraints else "")
    include = "#include <cuda_fp16.h>\n" if kind == "__half" else ""
    return f"{head}{include}__global__ void k(const {kind} *x, {out or kind} *y, int n) {{ {EACH.format(body)} }}\n"


def rowwise(body: str, kind: str = "float") -> str:
    include = "#include <cuda_fp16.h>\n" if kind == "__half" else ""
    start = EACH_ROW.format(kind)
    return f"{ROWS}{include}__global__ void k(const {kind} *x, {kind} *y, int rows, int cols) {{ {start}{body} }}\n"


@dataclass(frozen=True)
class Judged:
    """A candidate: ``source`` without its contract; ``plan`` changes to the original's launch."""

    name: str
    original: str
    candidate: str
    right: bool
    plan: dict[str, object] = field(default_factory=dict)


GELU = elementwise("float v = x[i]; y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f));")
HALF = elementwise("y[i] = __float2half(0.01f * __half2float(x[i]));", "__half")
HALF_SUM = rowwise(
    "__half s = __float2half(0.0f); for (int j = 0; j < cols; j++) s = __hadd(s, p[j]); y[r] = s;", "__half"
)
MEAN = rowwise("float s = 0.0f; for (int j = 0; j < cols; j++) s += p[j]; y[r] = s / cols;")
SPREAD = rowwise(
    "float m = 0.0f, v = 0.0f; for (int j = 0; j < cols; j++) m += p[j]; m /= cols;"
    " for (int j = 0; j < cols; j++) v += (p[j] - m) * (p[j] - m); y[r] = v / cols;"
)

TOLERANCE = [
    Judged("gelu by erfc", GELU, elementwise("float v = x[i]; y[i] = 0.5f * v * erfcf(v * -0.70710678f);"), True),
    Judged("gelu by normcdf", GELU, elementwise("float v = x[i]; y[i] = v * normcdff(v);"), True),
    Judged("gelu by tanh", GELU, elementwise(
        "float v = x[i]; y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));"), False),
    Judged("half of small magnitude lost", HALF, elementwise(
        "float v = 0.01f * __half2float(x[i]); y[i] = __float2half(fabsf(v) < 2e-4f ? 0.0f : v);", "__half"), False),
    Judged("a half sum kept in float", HALF_SUM, rowwise(
        "float s = 0; for (int j = 0; j < cols; j++) s += __half2float(p[j]); y[r] = s;", "__half"), True),
    Judged("a half sum from the end", HALF_SUM, rowwise(
        "__half s = __float2half(0.0f); for (int j = cols; j--;) s = __hadd(s, p[j]); y[r] = s;", "__half"), True),
    Judged("a mean by increments", MEAN, rowwise(
        "float m = 0.0f; for (int j = 0; j < cols; j++) m += (p[j] - m) / (j + 1); y[r] = m;"), True),
    Judged("a mean by fused multiply-add", MEAN, rowwise(
        "float s = 0, w = 1.0f / cols; for (int j = 0; j < cols; j++) s = fmaf(p[j], w, s); y[r] = s;"), True),
    Judged("Welford's variance", SPREAD, rowwise(
        "float m = 0, v = 0; for (int j = 0; j < cols; j++) { float d = p[j] - m; m += d / (j + 1);"
        " v += d * (p[j] - m); } y[r] = v / cols;"), True),
    Judged("a one-pass variance", SPREAD, rowwise(
        "float m = 0, v = 0; for (int j = 0; j < cols; j++) { m += p[j]; v += p[j] * p[j]; } m /= cols;"
        " y[r] = fmaxf(v / cols - m * m, 0.0f);"), False),
]  # fmt: skip


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Session]]:
    """A session for an original, kept for the next candidate against it."""
    folder, kept = tmp_path_factory.mktemp("judged"), dict[str, Session]()

    def session_of(text: str) -> Session:
        if text not in kept:
            path = folder / f"original{len(kept)}.cu"
            path.write_text(text)
            contract = load_contract(path)
            kept[text] = Session(SessionSpec(contract, Candidate(text, contract.plan), "host", "", 11, str(folder)))
        return kept[text]

    yield session_of
    for session in kept.values():
        session.close()


def judge(judged: Judged, session: Session) -> CaseFailure | str | None:
    """Why the candidate is refused; None where it is accepted."""
    (launch,) = session.contract.plan.launches
    plan = Plan((replace(launch, **judged.plan),))  # type: ignore[arg-type]
    candidate = Candidate(judged.candidate, plan)
    built = build(session.spec, candidate)
    if not isinstance(built, Binaries):
        return str(built)
    refused = session.illegal(candidate)
    if refused is not None:
        return refused.detail
    cases = [session.spec.smoke_case(), *session.search_cases(), *session.candidate_cases(candidate)]
    cases += [*session.held_out_cases(), *session.large_cases()]
    return session.first_failure(built.run, candidate, cases)[1]


@pytest.mark.parametrize("judged", TOLERANCE, ids=lambda judged: judged.name)
def test_tolerance_follows_the_element_and_the_truth(judged: Judged, sessions: Callable[[str], Session]) -> None:
    found = judge(judged, sessions(judged.original))
    assert (found is None) == judged.right, found


INTEGERS = elementwise("y[i] = 3 * x[i] + 7;", "int")
LONGS = elementwise("long long v = x[i]; y[i] = v * v + 1;", "long long")
RECIPROCAL = elementwise("y[i] = 1.0f / x[i];")
PLAIN = elementwise("y[i] = 2.0f * x[i] + 1.0f;")
HIGHEST = rowwise("float m = -INFINITY; for (int j = 0; j < cols; j++) m = fmaxf(m, p[j]); y[r] = m;")

VALUES = [
    Judged("integers by way of float", INTEGERS, elementwise("y[i] = (int)(3.0f * (float)x[i] + 7.0f);", "int"), False),
    Judged("integers by way of short", INTEGERS, elementwise("y[i] = 3 * (short)x[i] + 7;", "int"), False),
    Judged("integers added up", INTEGERS, elementwise("y[i] = x[i] + x[i] + x[i] + 7;", "int"), True),
    Judged("long integers by way of int", LONGS, elementwise(
        "long long v = (int)x[i] == x[i] ? x[i] : 0; y[i] = v * v + 1;", "long long"), False),
    Judged("one infinity for both zeros", RECIPROCAL, elementwise(
        "y[i] = x[i] == 0.0f ? INFINITY : 1.0f / x[i];"), False),
    Judged("a maximum from -1e30 on", HIGHEST, rowwise(
        "float m = -1e30f; for (int j = 0; j < cols; j++) m = fmaxf(m, p[j]); y[r] = m;"), False),
    Judged("a maximum from the first on", HIGHEST, rowwise(
        "float m = p[0]; for (int j = 1; j < cols; j++) m = fmaxf(m, p[j]); y[r] = m;"), True),
]  # fmt: skip
SIZES = [
    Judged("a grid of 64 blocks at most", PLAIN, PLAIN, False, {"grid": ("min(ceil_div(n, 256), 64)", "1", "1")}),
    Judged("a stride over 64 blocks at most", PLAIN, elementwise("y[i] = 0.0f;").replace(
        EACH.format("y[i] = 0.0f;"), "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;"
        " i += gridDim.x * blockDim.x) y[i] = 2.0f * x[i] + 1.0f;"), True,
           {"grid": ("min(ceil_div(n, 256), 64)", "1", "1")}),
    Judged("nothing at the timed size", PLAIN, elementwise("y[i] = n == 0x100000 ? 0.0f : 2.0f * x[i] + 1.0f;"), False),
    Judged("nothing at a macro's product", PLAIN, "#define A 60\n" + elementwise(
        "y[i] = n == A * 100 ? 0.0f : 2.0f * x[i] + 1.0f;"), False),
    Judged("an index of 16 bits", PLAIN, elementwise(
        "unsigned short s = i; if (s == i || i > 100000) y[i] = 2.0f * x[i] + 1.0f; else y[s] = 0.0f;"), False),
    Judged("launch bounds below the block", PLAIN, PLAIN.replace(
        "__global__ void", "#define MOST 32\n__global__ void __launch_bounds__(2 * MOST)"), False),
    Judged("a grid too high at the largest size", PLAIN, PLAIN.replace("blockIdx.x", "blockIdx.y"), False,
           {"grid": ("1", "ceil_div(n, 32)", "1"), "block": ("32", "1", "1")}),
    Judged("wrong at 8 modulo 16", PLAIN, elementwise(
        "y[i] = ((size_t)x & 15) == 8 ? 0.0f : 2.0f * x[i] + 1.0f;"), False),
]  # fmt: skip


@pytest.mark.parametrize("judged", VALUES, ids=lambda judged: judged.name)
def test_values_cover_whole_types(judged: Judged, sessions: Callable[[str], Session]) -> None:
    found = judge(judged, sessions(judged.original))
    assert (found is None) == judged.right, found


@pytest.mark.parametrize("judged", SIZES, ids=lambda judged: judged.name)
def test_sizes_cover_the_contract_and_what_the_candidate_names(
    judged: Judged, sessions: Callable[[str], Session]
) -> None:
    found = judge(judged, sessions(judged.original))
    assert (found is None) == judged.right, found
