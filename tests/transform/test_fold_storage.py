"""fold-storage: dynamic programs keep the rows that are read again, in any style; what is looked for later stays."""

from __future__ import annotations

import random

import pytest

from fsr.expressions import evaluate_int
from fsr.guard.check import guard
from fsr.transform.scratch.fold import FoldStorage

ACTION = FoldStorage()
SIZES = [{"p": p, "n": n, "m": m} for p, n, m in [(1, 1, 1), (3, 1, 5), (37, 6, 1), (64, 5, 7), (70, 12, 9)]]
ROWS, SLABS = "(n + 1) * (p * (m + 1))", "p * ((n + 1) * (m + 1))"


def kernel(
    body: str, *, count: str = SLABS, scratch: tuple[str, ...] = ("T",), more: str = "", launches: str = ""
) -> str:
    """A kernel in which thread t compares text t of ``a`` (n long) with text t of ``b`` (m long)."""
    buffers = "\n".join(f'// [scratch.{s}]\n// dtype = "int32"\n// count = "{count}"' for s in scratch)
    args = ", ".join(f'"{name}"' for name in ("a", "b", "y", *scratch, "p", "n", "m"))
    params = "".join(f"int *{s}, " for s in scratch)
    return f"""
// /// fsr
// [sizes]
// p = {{min = 1, max = 4096, timed = 4096}}
// n = {{min = 1, max = 64, timed = 64}}
// m = {{min = 1, max = 64, timed = 64}}
// [args]
// a = {{role = "in", shape = ["p", "n"], dtype = "int32"}}
// b = {{role = "in", shape = ["p", "m"], dtype = "int32"}}
// y = {{role = "out", shape = ["p"], dtype = "int32"}}
// [[launch]]
// entry = "k"
// grid = "ceil_div(p, 64)"
// block = 64
// args = [{args}]
{launches or "//"}
{buffers}
// ///
{more}
__global__ void k(const int *__restrict__ a, const int *__restrict__ b, int *y, {params}int p, int n, int m)
{{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= p) return;
    {body}
}}
"""


EDIT_DISTANCE = """
    int w = m + 1;
    int *D = T + t * (n + 1) * w;
    for (int j = 0; j <= m; j++) D[j] = j;
    for (int i = 0; i <= n; i++) D[i * w] = i;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int cost = a[t * n + i - 1] != b[t * m + j - 1];
            D[i * w + j] = min(min(D[(i - 1) * w + j] + 1, D[i * w + j - 1] + 1), D[(i - 1) * w + j - 1] + cost);
        }
    y[t] = D[n * w + m];
"""
FROM_ZERO = """
    for (int i = 0; i < n; i++) {
        int *row = T + (size_t)t * (n + 1) * (m + 1) + i * (m + 1);
        for (int j = 0; j < m; j++) {
            if (i == 0 || j == 0) row[j] = a[t * n + i] == b[t * m + j];
            else row[j] = max(T[(size_t)t * (n + 1) * (m + 1) + (i - 1) * (m + 1) + j], row[j - 1]);
        }
    }
    y[t] = T[(size_t)t * (n + 1) * (m + 1) + (n - 1) * (m + 1) + m - 1];
"""
LCS = """
    for (int i = 0; i <= n; ++i)
        for (int j = 0; j <= m; ++j) {
            if (i == 0 || j == 0) AT(i, j) = 0;
            else if (a[t * n + i - 1] == b[t * m + j - 1]) AT(i, j) = AT(i - 1, j - 1) + 1;
            else AT(i, j) = max(AT(i - 1, j), AT(i, j - 1));
        }
    y[t] = AT(n, m);
"""
DTW = """
    const int s = p * (m + 1);
    T[t] = 0;
    for (int j = 1; j <= m; j++) T[j * p + t] = 1 << 20;
    for (int i = 0; i < n; i++) {
        T[(i + 1) * s + t] = 1 << 20;
        for (int j = 0; j < m; j++) {
            int d = abs(a[t * n + i] - b[t * m + j]);
            int best = T[i * s + j * p + t];
            best = min(best, T[i * s + (j + 1) * p + t]);
            best = min(best, T[(i + 1) * s + j * p + t]);
            T[(i + 1) * s + (j + 1) * p + t] = best + d;
        }
    }
    y[t] = T[n * s + m * p + t];
"""
AFFINE = """
    H = H + t * (m + 1);
    E += t * (m + 1);
    F = F + t * (m + 1);
    int w = p * (m + 1);
    H[0] = 0; E[0] = -1000; F[0] = -1000;
    for (int j = 1; j <= m; j += 1) { H[j] = -5 - j; F[j] = -1000; }
    for (int i = 1; i < n + 1; i++) { int at = i * w; H[at] = -5 - i; E[at] = -1000; }
    int best = 0;
    for (int i = 1; i < n + 1; i++)
        for (int j = 1; j < m + 1; j++) {
            int at = i * w + j, left = at - 1, up = at - w, diag = up - 1;
            E[at] = (H[left] - 5) > (E[left] - 1) ? (H[left] - 5) : (E[left] - 1);
            F[at] = max(H[up] - 5, F[up] - 1);
            int v = H[diag] + (a[t * n + i - 1] == b[t * m + j - 1] ? 3 : -2);
            v = E[at] > v ? E[at] : v;
            H[at] = F[at] > v ? F[at] : v;
            best = max(best, H[at]);
        }
    y[t] = best;
"""
LAST_ROW = """
    if (n > 0) {
        int w = m + 1, own = t * (n + 1) * w;
        for (int j = 0; j < w; ++j) T[own + j] = 0;
        for (int i = 1; i <= n; ++i) {
            T[own + i * w] = -i;
            for (int j = 1; j < w; ++j) {
                int over = T[own + (i - 1) * w + j - 1] + (a[t * n + i - 1] == b[t * m + j - 1]);
                T[own + i * w + j] = max(over, max(T[own + (i - 1) * w + j], T[own + i * w + j - 1]) - 1);
            }
        }
        int best = T[own + n * w];
        for (int j = 1; j <= m; ++j) best = max(best, T[own + n * w + j]);
        y[t] = best;
    }
"""
TWO_BACK = """
    int w = p * (m + 1);
    int *D = T + t * (m + 1);
    for (int j = 0; j <= m; j++) { D[j] = j; D[w + j] = j + (a[t * n] != b[t * m]); }
    for (int i = 2; i <= n; i++)
        for (int j = 0; j <= m; j++)
            D[i * w + j] = min(D[(i - 1) * w + j] + 1, D[(i - 2) * w + j] + (a[t * n + i - 1] == a[t * n + i - 2]));
    y[t] = n > 1 ? 0 : 1;
    for (int j = 0; j <= m; j++) y[t] += D[n * w + j];
"""
OWN = "int w = m + 1; int *D = T + t * (n + 1) * w; for (int j = 0; j <= m; j++) D[j] = j;"
TURNS = """for (int i = 1; i <= n; i++) {
        D[i * w] = i;
        for (int j = 1; j <= m; j++)
            D[i * w + j] = min(min(D[(i - 1) * w + j], D[i * w + j - 1]) + 1,
                               D[(i - 1) * w + j - 1] + (a[t * n + i - 1] != b[t * m + j - 1]));
    }"""
AT = "#define AT(i, j) (T[(t) * (n + 1) * (m + 1) + (i) * (m + 1) + (j)])"
FOLDED = {
    "edit distance": {"body": EDIT_DISTANCE},
    "pointers to rows": {"body": FROM_ZERO},
    "a macro for places": {"body": LCS, "more": AT},
    "threads side by side": {"body": DTW, "count": ROWS},
    "gaps in matrices of their own": {"body": AFFINE, "count": ROWS, "scratch": ("H", "E", "F")},
    "the best of the last row": {"body": LAST_ROW},
    "two rows back": {"body": TWO_BACK, "count": ROWS},
    "a choice in the value": {
        "body": """
    for (int i = 0; i <= n; i++)
        for (int j = 0; j < m + 1; j++)
            AT(i, j) = i > 0 && j > 0 ? min(AT(i - 1, j - 1) + a[t * n + i - 1], AT(i - 1, j)) : i + j;
    y[t] = AT(n, m);
""",
        "more": AT,
    },
    "a row of a pointer before": {
        "body": f"""{OWN}
    for (int i = 1; i <= n; i++) {{
        int *now = &D[i * w];
        const int *above = now - w;
        now[0] = i;
        for (int j = 1; j <= m; j++) now[j] = min(above[j], min(above[j - 1], now[j - 1])) + b[t * m + j - 1];
    }}
    y[t] = D[n * w + m];""",
    },
    "a thread that compares several": {
        "body": f"for (int q = t; q < p; q += gridDim.x * blockDim.x) {{ {OWN} {TURNS} y[t] = D[n * w + m]; }}".replace(
            "t]", "q]"
        ).replace("t * ", "q * ")
    },
    "one index": {"body": f"{OWN} {TURNS} y[t] = D[n * w + m];"},
}
STAYING = {
    "a traceback": f"""{OWN} {TURNS}
    int i = n, j = m, steps = 0;
    while (i > 0 && j > 0) {{
        if (D[i * w + j] == D[(i - 1) * w + j] + 1) i--; else j--;
        steps++;
    }}
    y[t] = steps;""",
    "a column of all rows": f"""{OWN} {TURNS}
    int best = 0;
    for (int i = 0; i <= n; i++) best = max(best, D[i * w + m]);
    y[t] = best;""",
    "a row that data tells": f"{OWN} {TURNS} y[t] = D[(a[t * n] & 1) * w + m];",
    "a row back that data tells": f"""{OWN}
    for (int i = 1; i <= n; i++)
        for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1 - (a[t * n + i - 1] & 1) * (i - 1)) * w + j] + 1;
    y[t] = D[n * w + m];""",
    "the first row in each turn": f"""{OWN}
    for (int i = 1; i <= n; i++) for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j] + D[j];
    y[t] = D[n * w + m];""",
    "rows of which parts are left": f"""{OWN}
    for (int i = 1; i <= n; i++)
        for (int j = 0; j <= m; j++) if (a[t * n + i - 1] != b[0]) D[i * w + j] = D[(i - 1) * w + j] + 1;
    y[t] = D[n * w + m];""",
    "a band of each row": f"""{OWN}
    for (int i = 1; i <= n; i++)
        for (int j = max(1, i - 2); j <= min(m, i + 2); j++) D[i * w + j] = D[(i - 1) * w + j - 1] + 1;
    y[t] = D[n * w + m];""",
    "a loop that ends early": f"""{OWN}
    for (int i = 1; i <= n; i++) {{
        if (a[t * n + i - 1] == 3) break;
        for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j] + 1;
    }}
    y[t] = D[n * w + m];""",
    "rows that are set beforehand": f"""{OWN}
    for (int i = 1; i <= n; i++) for (int j = 0; j <= m; j++) D[i * w + j] = a[t * n + i - 1];
    for (int i = 1; i <= n; i++) for (int j = 0; j <= m; j++) D[i * w + j] += D[(i - 1) * w + j];
    y[t] = D[n * w + m];""",
    "what is set of what changes": """int w = m + 1, *D = T + t * (n + 1) * w, last = 1;
    for (int j = 0; j <= m; j++) D[j] = j;
    for (int i = 0; i <= n; i++) { D[i * w] = last; last = last * 3 % 7; }
    for (int i = 1; i <= n; i++) for (int j = 1; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j - 1] + D[i * w + j - 1];
    y[t] = D[n * w + m];""",
    "columns into the next row": """int w = m, *D = T + t * (n + 1) * (m + 1);
    for (int j = 0; j <= m; j++) D[j] = j;
    for (int i = 1; i <= n; i++) for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j] + 1;
    y[t] = D[n * w];""",
    "a column that the loop skips": f"""{OWN}
    for (int i = 1; i <= n; i++)
        for (int j = 0; j <= m; j++) {{
            if (a[t * n + i - 1] == 2) j++;
            D[i * w + j] = D[(i - 1) * w + j] + 1;
        }}
    y[t] = D[n * w + m];""",
    "a row that the loop skips": f"""{OWN}
    for (int i = 1; i <= n; i++) {{
        for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j] + 1;
        if (a[t * n + i - 1] == 2) i++;
    }}
    y[t] = D[n * w + m];""",
    "what is beyond a row's beginning": f"""{OWN}
    for (int i = 1; i <= n; i++)
        for (int j = 0; j <= m; j++) D[i * w + j] = D[(i - 1) * w + j - 1] + 1;
    y[t] = D[n * w + m];""",
    "memory that the last text left": f"""int w = m + 1, *D = T + t * (n + 1) * w;
    for (int j = 0; j <= m; j++) D[j] = j;
    for (int r = 0; r < 3; r++) {{
        {TURNS}
        y[t] = D[n * w + m];
        D[0] = y[t];
    }}""",
    "texts whose memory overlaps": f"""for (int q = t; q < p; q += gridDim.x * blockDim.x) {{
        int w = m + 1, *D = T + q * n * w;
        for (int j = 0; j <= m; j++) D[j] = j;
        {TURNS}
        y[q] = D[n * w + m];
    }}""",
    "a step of all threads": f"{OWN} {TURNS} __syncthreads(); y[t] = D[n * w + m];",
}
OTHER = """// [[launch]]
// entry = "other"
// grid = 1
// block = 1
// args = ["y", "T"]"""
READS = "__global__ void other(int *y, const int *T) { y[0] += T[1]; }"


@pytest.mark.parametrize("case", FOLDED.values(), ids=FOLDED)
def test_few_rows_are_enough(case: dict[str, str], subject_from, runner) -> None:
    _check(subject_from(kernel(**case)), runner)


@pytest.mark.parametrize("body", STAYING.values(), ids=STAYING)
def test_others_keep_all_rows(body: str, subject_from) -> None:
    assert not list(ACTION.moves(subject_from(kernel(body))))


def test_what_another_launch_reads_stays(subject_from) -> None:
    body = f"{OWN} {TURNS} y[t] = D[n * w + m];"
    assert list(ACTION.moves(subject_from(kernel(body, more=READS))))
    assert not list(ACTION.moves(subject_from(kernel(body, more=READS, launches=OTHER))))


def test_memory_shrinks_where_rows_are_the_outermost(subject_from) -> None:
    subject = subject_from(kernel(AFFINE, count=ROWS, scratch=("H", "E", "F")))
    changed = ACTION.apply(subject, next(iter(ACTION.moves(subject))))
    sizes = {"p": 100, "n": 50, "m": 20}
    counts = {s.name: evaluate_int(s.count, sizes) for s in changed.plan.scratch}
    assert counts["H"] == 2 * 100 * 21
    assert max(counts.values()) <= 2 * 100 * 21


@pytest.mark.parametrize("seed", range(16))
def test_composed(seed: int, subject_from, runner) -> None:
    _check(subject_from(_composed(random.Random(seed))), runner)


def _check(subject, runner) -> None:
    (move,) = ACTION.moves(subject)
    changed = ACTION.apply(subject, move)
    assert "% " in changed.source
    assert guard(changed, subject.candidate) is None
    runner.check(subject, changed, *SIZES)


def _composed(rng: random.Random) -> str:
    """A program whose rows, columns, bounds and beginnings are written one way or another."""
    slabs = rng.random() < 0.5
    stride, column = ("(m + 1)", 1) if slabs else rng.choice([("(p * (m + 1))", 1), ("(p * (m + 1))", "p")])
    base = f"t * (n + 1) * {stride}" if slabs else "t" if column == "p" else "t * (m + 1)"
    ahead = rng.choice([0, 1])

    def at(row: str, place: str) -> str:
        return rng.choice([f"D[{row} * s + {place} * {column}]", f"D[s * {row} + {column} * {place}]",
                           f"T[{base} + ({row} * s + {place} * {column})]"])  # fmt: skip

    i, above = ("(i + 1)", "i") if ahead else ("i", "(i - 1)")
    start = "int i = 0; i < n; i++" if ahead else rng.choice(["int i = 1; i <= n; ++i", "int i = 1; i < n + 1; i += 1"])
    first = f"for (int j = 0; j <= m; j++) {at('0', 'j')} = j * {rng.randint(1, 3)};"
    left = f"{at(i, '0')} = a[t * n + {i} - 1] + {i};"
    apart = rng.random() < 0.6
    reads = [at(above, "j"), at(above, "(j - 1)"), at(i, "(j - 1)")]
    value = f" {rng.choice('+-')} ".join([*rng.sample(reads, rng.randint(1, 2)), at(above, "j"), "b[t * m + j - 1]"])
    end = at("n", "m") if rng.random() < 0.5 else f"{at('n', 'm')} + {at('n', '0')}"
    return kernel(f"""
    const int s = {stride};
    int *D = T + {base};
    {first}
    {f"for ({start}) {left}" if apart else ""}
    for ({start}) {{
        {"" if apart else left}
        for (int j = 1; j <= m; j++) {at(i, "j")} = ({value}) % 1000;
    }}
    y[t] = {end};
""", count=SLABS if slabs else ROWS)  # fmt: skip
