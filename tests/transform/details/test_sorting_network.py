"""sorting-network: sorts of constant length in every common style, bit for bit, and what is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsr.transform.details.sorting_network import SortingNetwork

HEAD = """// /// fsr
// entry = "k<9>"
// [sizes]
// n = {min = 1, max = 4096, timed = 1024}
// [args]
// x = {role = "in", shape = ["n", 9], dtype = "TYPE"}
// y = {role = "out", shape = ["n"], dtype = "TYPE"}
// n = {value = "n"}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
#define SWAP(a, b) { TYPE_T h_ = a; a = b; b = h_; }
#define PUT(a, b) if ((a) > (b)) SWAP(a, b)
#define ORDER(a, b) { TYPE_T s_ = MIN(a, b), g_ = MAX(a, b); a = s_; b = g_; }
typedef TYPE_T number;
__device__ void change(TYPE_T *p, TYPE_T *q) { TYPE_T h = *q; *q = *p; *p = h; }
__device__ void trade(TYPE_T &p, TYPE_T &q) { TYPE_T h = p; p = q; q = h; }
__device__ void pass(TYPE_T *v, int last) { for (int j = 0; j < last; ++j) if (v[j] > v[j + 1]) trade(v[j], v[j + 1]); }
__device__ void put_in_order(TYPE_T *v, int m) {
  int i, j, k;
  TYPE_T t;
  SORT
}
template <int N> __global__ void k(const TYPE_T *x, TYPE_T *y, int n) {
  int id = blockIdx.x * 64 + threadIdx.x, at = 0;
  if (id >= n) return;
  TYPE_T v[N];
  for (int c = 0; c < N; ++c) v[at++] = x[id * N + c];
  put_in_order(v, N);
  y[id] = RESULT;
}"""

SORTS = {
    "bubble": "for (i = 0; i < m - 1; i++) for (j = 0; j < m - i - 1; j++) "
              "if (v[j] > v[j + 1]) { t = v[j]; v[j] = v[j + 1]; v[j + 1] = t; }",
    "descending": "for (i = 0; i < m; i++) for (j = 0; j < m - 1; j++) if (v[j] < v[j + 1]) SWAP(v[j], v[j + 1])",
    "falling bounds": "for (int i = m - 1; i > 0; --i) for (int j = 0; j < i; j++) if (v[j + 1] < v[j]) "
                      "change(v + j, &v[j + 1]);",
    "while": "int last = m - 1; while (last > 0) { j = 0; while (j < last) { if (v[j] >= v[j + 1]) "
             "trade(v[j], v[j + 1]); j++; } last--; }",
    "passes": "for (i = m - 1; i >= 1; i--) pass(v, i);",
    "exchange": "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) PUT(v[i], v[j])",
    "ternaries": "for (int a = 0; a < m - 1; a++) for (int b = a + 1; b < m; b++) "
                 "{ TYPE_T p = v[a], q = v[b]; v[a] = p > q ? q : p; v[b] = p > q ? p : q; }",
    "minima": "for (i = 0; i < m; i++) for (j = i & 1; j + 1 < m; j += 2) ORDER(v[j], v[j + 1])",
    "selection": "for (i = 0; i < m - 1; i++) { k = i; for (j = i + 1; j < m; j++) if (v[j] < v[k]) k = j; "
                 "t = v[k]; v[k] = v[i]; v[i] = t; }",
    "selection if another": "for (i = 0; i < m - 1; i++) { k = i; for (j = i + 1; j < m; j++) if (v[j] < v[k]) k = j; "
                            "if (k != i) { t = v[k]; v[k] = v[i]; v[i] = t; } }",
    "selection by value": "for (i = 0; i < m - 1; i++) { k = i; t = v[i]; for (j = i + 1; j < m; j++) "
                          "if (v[j] < t) { t = v[j]; k = j; } v[k] = v[i]; v[i] = t; }",
    "insertion": "for (i = 1; i < m; i++) { t = v[i]; j = i - 1; while (j >= 0 && v[j] > t) { v[j + 1] = "
                 "v[j]; j--; } v[j + 1] = t; }",
    "insertion from": "for (i = 1; i < m; i++) { t = v[i]; for (j = i; j > 0 && t < v[j - 1]; --j) v[j] "
                      "= v[j - 1]; v[j] = t; }",
    "insertion by exchanges": "for (int i = 1; i < m; i++) for (int j = i; j > 0 && v[j - 1] > v[j]; "
                              "j--) SWAP(v[j], v[j - 1])",
    "flag": "for (i = 0; i < m - 1; i++) { bool swapped = false; for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) "
            "{ SWAP(v[j], v[j + 1]) swapped = true; } if (!swapped) break; }",
    "flag in the condition": "bool again = true; for (i = 0; i < m - 1 && again; i++) { again = false; for (j = 0; j < "
                             "m - i - 1; j++) if (v[j] > v[j + 1]) { SWAP(v[j], v[j + 1]) again = true; } }",
    "until in order": "int in_order = 0; while (!in_order) { in_order = 1; for (i = 0; i < m - 1; i++) if (v[i] > "
                      "v[i + 1]) { trade(v[i], v[i + 1]); in_order = 0; } }",
    "do": "int last = m; bool again; do { again = false; for (i = 1; i < last; i++) if (v[i - 1] > v[i]) "
          "{ SWAP(v[i - 1], v[i]) again = true; } --last; } while (again);",
    "insertion by break": "for (i = 0; i < m; i++) { t = v[i]; for (j = i - 1; j >= 0; j--) { if (v[j] <= t) break; "
                          "v[j + 1] = v[j]; } v[j + 1] = t; }",
    "exchanges by break": "for (i = 1; i < m; i++) for (j = i; j > 0; j--) { if (v[j] < v[j - 1]) { SWAP(v[j], v[j - "
                          "1]) } else break; }",
    "insertion if needed": "for (i = 1; i < m; i++) if (v[i] < v[i - 1]) { t = v[i]; j = i - 1; while (j >= 0 && v[j] "
                           "> t) { v[j + 1] = v[j]; j--; } v[j + 1] = t; }",
    "shell": "for (int g = m / 2; g > 0; g /= 2) for (i = g; i < m; i++) { t = v[i]; for (j = i; j >= g && v[j - g] > "
             "t; j -= g) v[j] = v[j - g]; v[j] = t; }",
    "each with all": "for (i = 0; i < m; i++) for (j = 0; j < m; j++) if (v[i] < v[j]) trade(v[i], v[j]);",
    "continue": "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) { if (!(v[i] > v[j])) continue; SWAP(v[i], "
                "v[j]) }",
    "half": "for (i = 0; i <= m / 2; i++) { k = i; for (j = i + 1; j < m; j++) if (v[j] < v[k]) k = j; "
            "trade(v[k], v[i]); }",
}  # fmt: skip
BYTES = {
    "other sign": "for (i = 0; i < m; i++) for (j = i + 1; j < m; j++) if (v[i] > v[j]) { char h = v[i]; v[i] = v[j]; "
                  "v[j] = h; }",
    "wider": "for (i = 1; i < m; i++) { int h = v[i]; j = i - 1; while (j >= 0 && v[j] > h) { v[j + 1] = v[j]; j--; } "
             "v[j + 1] = h; }",
    "wider minima": "for (i = 0; i < m; i++) for (j = i + 1; j < m; j++) { int p = v[i], q = v[j]; v[i] = min(p, q); "
                    "v[j] = max(p, q); }",
    "exclusive or": "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) if (v[i] > v[j]) { v[i] ^= v[j]; "
                    "v[j] ^= v[i]; v[i] = v[j] ^ v[i]; }",
}  # fmt: skip


def text_of(sort: str, type_: str = "float", result: str = "v[N / 2]") -> str:
    dtype = {"float": "float32", "double": "float64", "unsigned char": "uint8", "int": "int32"}[type_]
    end = {"float": "f", "double": ""}.get(type_)
    names = ("min", "max") if end is None else (f"fmin{end}", f"fmax{end}")
    text = HEAD.replace("SORT", sort).replace("RESULT", result).replace("MIN", names[0]).replace("MAX", names[1])
    return text.replace("TYPE_T", type_).replace("TYPE", dtype)


def changed(subject):
    (move,) = SortingNetwork().moves(subject)
    return SortingNetwork().apply(subject, move)


def unlike_numbers(type_: str, n: int):
    """Rows with zeros of both signs, with infinities, with NaNs, and ordinary ones."""
    rng = np.random.default_rng(3)
    if type_ not in ("float", "double"):
        return rng.integers(0, 6, size=(n, 9))
    values = rng.choice([0.0, -0.0, 1.0, -1.0, 2.5, 1e-42], size=(n, 9))
    values[1::4] = rng.choice([np.inf, -np.inf, 0.5, -0.0], size=values[1::4].shape)
    values[2::4] = rng.choice([np.nan, 0.5, 3.0, -2.0], size=values[2::4].shape)
    values[3::4] = rng.standard_normal(values[3::4].shape)
    return values


@pytest.mark.parametrize("style", SORTS)
@pytest.mark.parametrize("type_", ["float", "double", "unsigned char", "int"])
def test_sorts_are_networks(style: str, type_: str, subject_from, runner) -> None:
    if type_ in ("double", "int") and style not in ("bubble", "selection", "insertion", "minima", "flag", "shell"):
        pytest.skip("as with others")
    result = "v[4] + v[0] * 2 - v[8]" if type_ == "int" and style != "half" else "v[N / 2]"
    subject = subject_from(text_of(SORTS[style], type_, result))
    candidate = changed(subject)
    assert "merge_exchange_9(v)" in candidate.source
    assert "#pragma unroll\n  for (int c = 0" in candidate.source
    given = {"x": unlike_numbers(type_, 200)}
    want = runner.outputs(subject.candidate, subject.contract, {"n": 200}, given=given)["y"]
    got = runner.outputs(candidate, subject.contract, {"n": 200}, given=given)["y"]
    assert got.tobytes() == want.tobytes()
    runner.check(subject, candidate, {"n": 1}, {"n": 70})
    assert not list(SortingNetwork().moves(replace(subject, candidate=candidate)))


def test_a_constant_that_another_hides_is_asked_for(subject_from, runner) -> None:
    text = text_of("for (i = 0; i < M; i++) for (j = 0; j < M - 1; j++) PUT(v[j], v[j + 1])")
    text = text.replace("typedef", "constexpr int M = 9;\ntypedef").replace(
        "int m) {", "int m) {\n  { const int M = 5; m = M; }"
    )
    subject = subject_from(text)
    for move in SortingNetwork().moves(subject):
        runner.check(subject, SortingNetwork().apply(subject, move), {"n": 70})


def test_templates_over_a_type(subject_from, runner) -> None:
    text = text_of("for (i = m; i > 1; i--) for (j = 1; j < i; j++) if (v[j - 1] > v[j]) trade(v[j - 1], v[j]);", "int")
    text = text.replace(
        "__device__ void trade(int &p, int &q) { int", "template <class U> __device__ void trade(U &p, U &q) { U"
    )
    head = "__device__ void put_in_order(int *v"
    text = text.replace(head, f"template <typename T> {head.replace('int *', 'T *')}")
    subject = subject_from(text.replace("  int t;", "  T t;"))
    runner.check(subject, changed(subject), {"n": 70})
    other = text.replace("put_in_order(v, N);", "float w[9]; w[0] = 0; put_in_order(w, 1); put_in_order(v, N);")
    assert not list(SortingNetwork().moves(subject_from(other)))


def test_the_first_elements_may_be_all_that_is_sorted(subject_from, runner) -> None:
    for first in ("for (i = 0; i < m - 1; i++) for (j = 0; j < m - i - 2; j++) PUT(v[j], v[j + 1])",
                  "for (i = 0; i < m - 1; i++) { k = i; for (j = i; j < m - 1; j++) if (v[j] < v[k]) k = j; "
                  "t = v[k]; v[k] = v[i]; v[i] = t; }"):  # fmt: skip
        subject = subject_from(text_of(first, "int", "v[8] * 100 + v[7] * 10 + v[3]"))
        assert "merge_exchange_8(v)" in changed(subject).source
        runner.check(subject, changed(subject), {"n": 70})


@pytest.mark.parametrize("sort", [
    "for (i = 0; i < m - 5; i++) for (j = 0; j < m - i - 1; j++) PUT(v[j], v[j + 1])",  # the fifth may be any
    "for (i = 0; i < m - 1; i++) for (j = 0; j < m - i - 1; j++) { if (v[j] > v[j + 1]) SWAP(v[j], v[j + "
    "1]) v[0] = v[1]; }",
    "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) if (v[i] > v[j]) { v[i] = v[j]; v[j] = "
    "v[i]; }",  # loses one
    "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) if (v[i] * v[i] > v[j] * v[j]) SWAP(v[i], v[j])",
    "for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) if (v[i] > v[j]) { int h = v[i]; v[i] = v[j]; v[j] = h; }",
    "k = 0; for (i = 0; i < m - 1; i++) for (j = i + 1; j < m; j++) if (v[i] > v[j]) { SWAP(v[i], v[j]) "
    "k++; } v[0] += k;",
    "for (i = 1; i < m; i++) { t = v[i]; j = i - 1; while (j >= 0 && v[j] > t) { v[j + 1] = v[j]; j--; } v[0] = t; }",
    "for (i = 2; i < m; i++) { t = v[i]; j = i - 1; while (j >= 0 && v[j] > t) { v[j + 1] = v[j]; j--; } "
    "v[j + 1] = t; }",
    "for (i = 1; i < m; i++) { t = v[i]; j = i - 1; while (j > 0 && v[j] > t) { v[j + 1] = v[j]; j--; } "
    "v[j + 1] = t; }",
    "for (i = 1; i < m; i++) { t = v[i]; j = i - 1; while (j >= 0 && v[j] > t) { v[j + 1] = v[j]; j--; } }",
    "for (i = 1; i < m; i++) for (j = i; j > 0 && v[j - 1] > v[j]; j--) { SWAP(v[j], v[j - 1]) } v[j] = 1;",
    "for (i = 0; i < m - 1; i++) { k = i; for (j = i + 1; j < m; j++) if (v[j] < v[k]) k = j; t = v[k]; v[k] = v[i]; }",
    "for (i = 0; i < m - 1; i++) for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) trade(v[j], v[j]);",
    # What is moved on leaves a copy behind, which is not the element that is looked for a place.
    "for (i = 1; i < m; i++) { t = v[i]; for (j = i; j > 0 && v[j - 1] > v[j]; --j) v[j] = v[j - 1]; v[j] = t; }",
    # Flags that others set, that one pass does not set, that are set before, that end it while the rest has no order.
    "for (i = 0; i < m - 1; i++) { bool s = false; for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) { SWAP(v[j], "
    "v[j + 1]) s = j > 2; } if (!s) break; }",
    "bool s = false; for (i = 0; i < m - 1; i++) { for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) { SWAP(v[j], "
    "v[j + 1]) s = true; } if (s) break; }",
    "for (i = 0; i < m - 1; i++) { bool s = false; for (j = 0; j < m - i - 1; j++) { if (v[j] > v[j + 1]) SWAP(v[j], "
    "v[j + 1]) if (v[0] > v[8]) { SWAP(v[0], v[8]) s = true; } } if (!s) break; }",
    "for (i = 0; i < m - 1; i++) { bool s = false; for (j = i + 1; j < m; j++) if (v[i] > v[j]) { SWAP(v[i], v[j]) "
    "s = true; } if (!s) break; }",
    "for (i = 0; i < m - 1; i++) { bool s = false; for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) { SWAP(v[j], "
    "v[j + 1]) s = true; } if (!s) return; }",
    "int n = 0; for (i = 0; i < m - 1; i++) { bool s = false; for (j = 0; j < m - i - 1; j++) if (v[j] > v[j + 1]) { "
    "SWAP(v[j], v[j + 1]) s = true; } if (!s) break; n++; } v[0] += n;",
    "for (i = 1; i < m; i++) { int h = v[i]; j = i - 1; while (j >= 0 && v[j] > h) { v[j + 1] = v[j]; j--; } v[j + 1] "
    "= h; }",  # of floats
    "for (i = 1; i < m; i++) { if (v[i] > v[i - 1]) { t = v[i]; j = i - 1; while (j >= 0 && v[j] > t) { v[j + 1] = "
    "v[j]; j--; } v[j + 1] = t; } }",
    "for (i = 0; i < m; i++) for (j = 1; j < m; j++) if (v[i] < v[j]) trade(v[i], v[j]);",
    "for (i = 0; i < 2; i++) for (j = 0; j < 1; j++) PUT(v[j], v[j + 1])",  # two elements
])  # fmt: skip
def test_what_sorts_otherwise_or_not_stays(sort: str, subject_from) -> None:
    assert not list(SortingNetwork().moves(subject_from(text_of(sort))))


@pytest.mark.parametrize("style", BYTES)
def test_bytes_in_variables_of_other_types(style: str, subject_from, runner) -> None:
    subject = subject_from(text_of(BYTES[style], "unsigned char", "v[4] + v[0] * 2 - v[8]"))
    given = {"x": np.random.default_rng(5).integers(0, 256, size=(300, 9))}
    want = runner.outputs(subject.candidate, subject.contract, {"n": 300}, given=given)["y"]
    got = runner.outputs(changed(subject), subject.contract, {"n": 300}, given=given)["y"]
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("type_", ["signed char", "unsigned", "char"])
def test_bytes_that_compare_otherwise_in_another_type_stay(type_: str, subject_from) -> None:
    sort = BYTES["wider"].replace("int h", f"{type_} h")
    offered = list(SortingNetwork().moves(subject_from(text_of(sort, "unsigned char"))))
    assert bool(offered) is (type_ == "unsigned")


def test_a_length_that_is_not_known_stays(subject_from) -> None:
    text = text_of(SORTS["bubble"]).replace("put_in_order(v, N);", "put_in_order(v, n);")
    assert not list(SortingNetwork().moves(subject_from(text)))


@pytest.mark.parametrize("type_", ["double", "int"])
@pytest.mark.parametrize("style", ["insertion", "bubble", "half"])
def test_each_length_has_a_network(style: str, type_: str, subject_from, runner) -> None:
    text = text_of(SORTS[style], type_, "middle(v, N) + 3 * middle(w, 6) - u")
    text = text.replace("__device__ void put_in_order(", "__device__ inline TYPE_T middle(").replace("TYPE_T", type_)
    end = "return m % 2 ? v[m / 2] : (v[m / 2 - 1] + v[m / 2]) / 2;"
    text = text.replace(SORTS[style].replace("TYPE_T", type_), f"{SORTS[style].replace('TYPE_T', type_)} {end}")
    fill = f"{type_} w[6]; for (int c = 0; c < 6; ++c) w[c] = x[id * 9 + c + 2];"
    other = "w[1]" if style == "half" else "middle(w, n % 5 + 1)"
    text = text.replace("put_in_order(v, N);", f"{fill} {type_} u = {other};")
    subject = subject_from(text)
    candidate = changed(subject)
    assert all(f"if (m == {n})" in candidate.source for n in (6, 9))
    assert f"__device__ __forceinline__ {type_} middle(" in candidate.source
    runner.check(subject, candidate, {"n": 1}, {"n": 70}, {"n": 71})


HALF = SORTS["half"]


@pytest.mark.parametrize(("calls", "offered"), [
    ("put_in_order(v, N); y[id] = v[4];", True),
    ("put_in_order(v, N); y[id] = v[0] + v[N / 2];", True),
    ("put_in_order(v, N); y[id] = v[5];", False),
    ("put_in_order(v, N); y[id] = v[id % 5];", False),
    ("put_in_order(v, N); y[id] = *v;", False),
    ("put_in_order(v, N); put_in_order(v, N); y[id] = v[4];", False),
    ("for (int r = 0; r < n; ++r) { v[0] = r; put_in_order(v, N); } y[id] = v[4];", False),
    ("put_in_order(v, N); y[id] = v[4]; v[0] = y[id]; put_in_order(v, N); y[id] += v[4];", False),
    ("put_in_order(v, N); y[id] = v[4]; v[0] = v[1] = 3; put_in_order(v, N); y[id] += v[4];", False),
    ("put_in_order(v, 3); y[id] = v[1]; v[0] = 3; v[1] = y[id]; v[2] = id; put_in_order(v, 3); y[id] += v[1];", True),
    ("put_in_order(v, N); int w[7]; for (int c = 0; c < 7; ++c) w[c] = x[id * N + c]; put_in_order(w, 7); "
     "y[id] = v[4] * 10 + w[3];", True),
    ("put_in_order(v, N); int w[7]; for (int c = 0; c < 7; ++c) w[c] = x[id * N + c]; put_in_order(w, 7); "
     "y[id] = v[4] * 10 + w[4];", True),  # the longer one is sorted that far
    ("int *p = v; put_in_order(p, N); y[id] = v[8];", False),
])  # fmt: skip
def test_a_function_sorts_as_far_as_its_callers_read(calls: str, offered: bool, subject_from, runner) -> None:
    text = text_of(HALF, "int").replace("put_in_order(v, N);", calls).replace("y[id] = v[N / 2];\n", "\n")
    subject = subject_from(text)
    assert bool(list(SortingNetwork().moves(subject))) is offered
    if offered:
        runner.check(subject, changed(subject), {"n": 1}, {"n": 70})


@pytest.mark.parametrize("head", ["__device__ __noinline__", "__device__ __forceinline__", "static inline __device__"])
def test_how_a_function_is_called_stays_where_it_says(head: str, subject_from, runner) -> None:
    text = text_of(SORTS["bubble"], "int").replace("__device__ void put_in_order", f"{head} void put_in_order")
    candidate = changed(subject_from(text))
    kept = head if "static" not in head else "static __forceinline__ __device__"
    assert f"{kept} void put_in_order(" in candidate.source
    runner.check(subject_from(text), candidate, {"n": 70})


def test_a_kernel_of_two_sizes_reads_what_one_of_them_has_not_sorted(subject_from, runner) -> None:
    """Its network stands where it is the other."""
    sort = "for (int i = 0; i < 5; i++) for (int j = i + 1; j < 9; j++) PUT(v[i], v[j])"
    text = text_of("", "int").replace("put_in_order(v, N);", sort).replace("y[id] = v[N / 2]", "y[id] = v[N - 5]")
    subject = subject_from(text)
    assert "if (N == 9)" in changed(subject).source
    runner.check(subject, changed(subject), {"n": 70})


LOOPS = "for (int i = 0; i < 9; ++i) for (int j = 0; j < 8; ++j) "


@pytest.mark.parametrize("change", [
    ("float v[N];", "volatile float v[N];"),
    ("#define SWAP", "__device__ float fminf(float a, float b) { return a; }\n#define SWAP"),
    ("put_in_order(v, N);", LOOPS + "{ __syncwarp(); PUT(v[j], v[j + 1]) }"),
    ("put_in_order(v, N);", LOOPS + "{ if (j > n) break; PUT(v[j], v[j + 1]) }"),
])  # fmt: skip
def test_what_is_no_plain_sort_stays(change: tuple[str, str], subject_from) -> None:
    text = text_of("v[m - 1] += v[0];").replace(*change)
    if "put_in_order" not in change[0]:
        text = text.replace(
            "put_in_order(v, N);", "for (int i = 0; i < 9; ++i) for (int j = 0; j < 8; ++j) ORDER(v[j], v[j + 1])"
        )
    assert not list(SortingNetwork().moves(subject_from(text)))


def test_plans_that_flush_small_numbers_stay(subject_from) -> None:
    subject = subject_from(text_of(SORTS["bubble"]))
    plan = replace(subject.candidate.plan, flags=("-ftz=true",))
    assert not list(SortingNetwork().moves(replace(subject, candidate=replace(subject.candidate, plan=plan))))


PART = "for (int i = 0; i <= N / 2; i++) for (int j = i + 1; j < N; j++) PUT(v[i], v[j])"


@pytest.mark.parametrize(("result", "offered"), [
    ("v[N / 2]", True), ("v[1] + v[3]", True), ("v[5]", False), ("v[id % N]", False), ("*v", False), ("pick(v)", False),
])  # fmt: skip
def test_a_part_that_is_sorted_is_all_that_is_read(result: str, offered: bool, subject_from, runner) -> None:
    text = text_of("", "int", result).replace("put_in_order(v, N);", PART)
    text = text.replace("template", "__device__ int pick(int *v) { return v[7]; }\ntemplate")
    subject = subject_from(text)
    assert bool(list(SortingNetwork().moves(subject))) is offered
    if offered:
        runner.check(subject, changed(subject), {"n": 70})


def test_a_part_that_the_next_turn_goes_on_with_stays(subject_from) -> None:
    turns = f"for (int r = 0; r < n; ++r) {{ v[8] = r; {PART} }}"
    text = text_of("", "int", "v[4]").replace("put_in_order(v, N);", turns)
    assert not list(SortingNetwork().moves(subject_from(text)))
