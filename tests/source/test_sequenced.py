"""Steps within expressions, ``do`` and ``switch`` become statements that do the same."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from fsr.source.emit import emit_stmts
from fsr.source.form import OpaqueExpr, OpaqueStmt
from fsr.source.parse import parse_kernels
from fsr.source.walk import walk_exprs, walk_stmts

COMPILER = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), "")
HEAD = "__global__ void k(int *p, const int *q, int m, unsigned N, int kind) "
STATE = "int i = 2, j = 5, a = 1, b = 0; const int *s = q; unsigned u = 1; "

APART = {
    "a = *s++;": "a = *s;\ns++;\n",
    "p[i++] = a;": "p[i] = a;\ni++;\n",
    "p[++i] += q[j--];": "i++;\np[i] += q[j];\nj--;\n",
    "int c = *s++, d = *s++;": "int c = *s;\ns++;\nint d = *s;\ns++;\n",
    "a = b = m * 2;": "b = m * 2;\na = b;\n",
    "p[0] = p[1] = 0;": "p[1] = 0;\np[0] = 0;\n",
    "if (i++ < 3) p[0] = 1;": "if (i < 3) {\n    i++;\n    p[0] = 1;\n} else {\n    i++;\n}\n",
    "while (j-- > 0) p[j] = 1;": "while (j > 0) {\n    j--;\n    p[j] = 1;\n}\nj--;\n",
    "int n = 0; do { a += n; n++; } while (n < m);":
        "int n = 0;\nfor (n = 0; n < (m > 0 ? m : 1); ++n) {\n    a += n;\n}\n",
    "do { a -= 3; } while (a > m);": "for (;;) {\n    a -= 3;\n    if (!(a > m)) break;\n}\n",
    "do { const int n = m; a += n; } while (0);": "{\n    const int n = m;\n    a += n;\n}\n",
    "do { if (m) break; a--; } while (0);": "for (;;) {\n    if (m) break;\n    a--;\n    if (!0) break;\n}\n",
    "do { for (int n = 0; n < m; n++) if (q[n]) break; a--; } while (false);":
        "{\n    for (int n = 0; n < m; ++n) {\n        if (q[n]) break;\n    }\n    a--;\n}\n",
    "switch (kind) { case 0: a = 1; break; case 1: case 2: a = 2; break; default: a = 3; }":
        "if (kind == 0) {\n    a = 1;\n} else if (kind == 1 || kind == 2) {\n    a = 2;\n} else {\n    a = 3;\n}\n",
    "for (int s = m; s > 0; s >>= 1) { if (s == 4) continue; a += s; }":
        "for (int s = m; s > 0; s >>= 1) {\n    if (s == 4) {\n    } else {\n        a += s;\n    }\n}\n",
    "for (int t = 0; t < m; t++, a += 2) { if (kind) { if (t == 4) continue; p[t] = a; } }":
        "for (int t = 0; t < m; ++t) {\n    if (kind) {\n        if (t == 4) {\n        } else {\n"
        "            p[t] = a;\n        }\n    }\n    a += 2;\n}\n",
    "switch (kind) { case 0: a = 1; break; case 5: case 6: break; }":
        "if (kind == 0) {\n    a = 1;\n} else if (kind == 5 || kind == 6) {\n}\n",
}  # fmt: skip
TOGETHER = [
    "a = *s++ + *s;",  # the variable is named again
    "p[i] = i++;",
    "a = m && i++;",  # not every evaluation takes the step
    "a = m ? i++ : j;",
    "if (m > 3 && i++ > 3) a = 2;",
    "while (j-- > 0) { if (p[j]) break; }",  # which leaves out the last step
    "a = p[0]++;",
    "p[a] = a = 3;",
    "do { if (m) continue; a--; } while (a > 0);",
    "switch (kind) { case 0: a = 1; case 1: a = 2; break; }",  # one goes on into the next
    "switch (kind) { case 0: if (m) break; a = 2; break; }",
    "switch (kind++) { case 0: a = 1; break; }",
]


def body_of(text: str) -> str:
    (kernel,) = parse_kernels(f"{HEAD}{{ {STATE}{text} }}").values()
    return emit_stmts(kernel.body[6:])


@pytest.mark.parametrize(("text", "expected"), APART.items())
def test_steps_and_branches_are_statements(text: str, expected: str) -> None:
    assert body_of(text) == expected


@pytest.mark.parametrize("text", TOGETHER)
def test_what_is_not_sure_to_do_the_same_stays(text: str) -> None:
    (kernel,) = parse_kernels(f"{HEAD}{{ {STATE}{text} }}").values()
    opaque = [s for s in walk_stmts(kernel.body) if isinstance(s, OpaqueStmt)]
    assert opaque or any(isinstance(e, OpaqueExpr) for e in walk_exprs(kernel.body))


PARTS = (
    "p[i++ & 7] = {v};", "{v} = q[--j & 7];", "{v} += i++;", "{v} = {w} = m + {v};", "p[1] = p[2] = 0;",
    "if (i++ < {c}) {{ {one} }}", "if (--j > {c}) {{ {one} }} else {{ {two} }}",
    "{{ int t = {c}; while (t-- > 0) {{ {one} }} p[3] += t; }}",
    "{{ int t = {c}; do {{ {one} t++; }} while (t < m); p[4] += t; }}",
    "{{ unsigned t = {c}; do {{ {one} t++; }} while (t < kind); p[4] += t; }}",
    "{{ int t = {c}; do {{ {one} t++; }} while (t < N); p[2] += t; }}",
    "{{ int t = {c}; do {{ {one} t++; }} while (t <= (int)N); p[5] += t; }}",
    "{{ int t = 0; do {{ {one} if (p[0] > 90) break; t += 2; }} while (t < {c}); p[6] += t; }}",
    "switch (kind & 3) {{ case 0: {one} break; case {c}: case 9: {{ {two} break; }} default: p[7] += {c}; }}",
    "for (int t = {c}; t > 0; t >>= 1, {w}++) {{ if (a & t) continue; {one} if (b > 9) {{ {two} continue; }} a++; }}",
    "for (int t = 0; t < m && a < 99; t++) {{ if (t == {c}) {{ {one} continue; }} else {{ {two} }} p[1] += t; }}",
    "for (int t = 0; t < m && b != 7; t++) {{ if (t != {c}) {{ {one} }} else continue; {two} p[2] -= t; }}",
    "for (int t = 0; t < m; t++, {w} += 2) {{ if (a & 1) {{ if (t == {c}) continue; {one} }} }}",
    "for (int t = m; t > 0; {w}++, --t) {{ if (t & 1) {{ {one} }} else {{ {two} if (b > 9) break; else continue; }} }}",
    "for (int t = 0; t < m; t++, t++) {{ {one} }}", "for (int t = 0; t < m; t++, m--) {{ {one} }}",
    "{{ int w = 1; for (int t = 0; t < {c} * 9; t += w, w *= 2) {{ {one} }} p[5] += w; }}",
    "for (int t = {c}; t--;) {{ {one} }}", "{v} = s[{c} & 1] + *s; s = q;", "{v} = *s++; s = q;",
)  # fmt: skip


def program(rng: random.Random, depth: int = 2) -> str:
    part = rng.choice(PARTS if depth else PARTS[:5])
    names = {"v": rng.choice("ab"), "w": "b", "c": rng.randrange(1, 5)}
    one, two = (program(rng, depth - 1) for _ in range(2)) if depth else ("", "")
    return part.format(one=one, two=two, **names)


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
def test_composed_programs_compute_the_same(tmp_path: Path) -> None:
    rng = random.Random(7)
    bodies, apart = [], 0
    for _ in range(150):
        text = STATE + " ".join(program(rng) for _ in range(4)) + " p[0] += a + b + i + j + (int)u;"
        (kernel,) = parse_kernels(f"{HEAD}{{ {text} }}").values()
        bodies.append((text, emit_stmts(kernel.body)))
        apart += not any(isinstance(s, OpaqueStmt) for s in walk_stmts(kernel.body))
    assert apart > 75  # most are read whole
    functions = "".join(
        f"void {kind}{n}(int *p, const int *q, int m, unsigned N, int kind) {{\n{one}\n}}\n"
        for n, pair in enumerate(bodies) for kind, one in zip(("was", "is"), pair, strict=True)
    )  # fmt: skip
    tried = "for (int m = -2; m < 5; m++) for (int kind = 0; kind < 5; kind++)"
    calls = "".join(
        f"{tried} {{ int x[8] = {{}}, y[8] = {{}}; was{n}(x, q, m, m + 3, kind); is{n}(y, q, m, m + 3, kind);"
        f' if (memcmp(x, y, sizeof x)) bad |= 1, printf("{n} "); }}\n'
        for n in range(len(bodies))
    )
    whole = f"#include <cstdio>\n#include <cstring>\n{functions}int main() {{ int q[64], bad = 0;"
    whole += f" for (int i = 0; i < 64; i++) q[i] = i * 7 % 11;\n{calls}return bad; }}\n"
    (tmp_path / "all.cpp").write_text(whole)
    subprocess.run([COMPILER, "-w", "-O0", "-fwrapv", "-o", tmp_path / "all", tmp_path / "all.cpp"], check=True)
    ran = subprocess.run([tmp_path / "all"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout


def test_a_comment_that_ends_in_a_variables_name_ends() -> None:
    (kernel,) = parse_kernels("__global__ void k(float *x, int n /* n */) { x[0] = n /* n */; }").values()
    assert emit_stmts(kernel.body) == "x[0] = n;\n"


def test_arrays_that_are_given_variables_are_set_one_by_one() -> None:
    body = "float a[2] = {x[i], 1.f}; float b[2] = {0.f, 1.f}; const int c[1] = {i};"
    text = f"__global__ void k(float *x, int i) {{ {body} }}"
    (kernel,) = parse_kernels(text).values()
    assert emit_stmts(kernel.body).splitlines() == [
        "float a[2];", "a[0] = x[i];", "a[1] = 1.f;", "float b[2] = {0.f, 1.f};", "int c[1];", "c[0] = i;",
    ]  # fmt: skip


def test_vectors_that_are_listed_are_made() -> None:
    text = "__global__ void k(float *x) { float3 v = {1.f, x[0]}; float2 w{x[1], x[2]}; int a[2] = {1, 2}; }"
    (kernel,) = parse_kernels(text).values()
    assert emit_stmts(kernel.body).splitlines() == [
        "float3 v = make_float3(1.f, x[0], 0);", "float2 w = make_float2(x[1], x[2]);", "int a[2] = {1, 2};",
    ]  # fmt: skip
