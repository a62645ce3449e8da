"""Accesses are found in every spelling; what cannot be followed is refused."""

from __future__ import annotations

import pytest

from fsr.analysis.effects import Unclear, accesses, element_type, pointers
from fsr.analysis.elements import always
from fsr.source.emit import emit_expr
from fsr.source.form import KernelForm
from fsr.source.parse import parse_kernels


def parsed(body: str) -> KernelForm:
    return parse_kernels(f"__global__ void k(const float *x, float *y, unsigned *c, int n, int i) {{ {body} }}")["k"]


def found(body: str) -> list[tuple[str, str, str]]:
    kernel = parsed(body)
    known = pointers(kernel, {})
    return [(a.root, emit_expr(a.offset), a.kind) for a in accesses(kernel.body, known)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y[i] = x[i + 1];", [("x", "i + 1", "read"), ("y", "i", "write")]),
        ("y[i] += 1;", [("y", "i", "read"), ("y", "i", "write")]),
        ("*y = *(x + n);", [("x", "n", "read"), ("y", "0", "write")]),
        ("const float *p = x + n; y[0] = p[i];", [("x", "i", "read"), ("y", "0", "write")]),
        ("const float *p = &x[n * i]; float v = __ldg(p + 2);", [("x", "2", "read")]),
        ("atomicAdd(&c[i], 1u); atomicMax(c + n, 2u);", [("c", "i", "atomic"), ("c", "n", "atomic")]),
        ("float v = x[(int)x[i]];", [("x", "i", "read"), ("x", "(int)x[i]", "read")]),
        ("float t[4]; t[i] = x[0];", [("x", "0", "read")]),
        ("y[i] = (x + n)[i] + *(x + n + i);", [("x", "n + i", "read"), ("x", "n + i", "read"), ("y", "i", "write")]),
        ("float v = n > 0 ? x[0] : -x[1];", [("x", "0", "read"), ("x", "1", "read")]),
    ],
)
def test_accesses(body: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "unknown(y);",
        "bool b = x == y;",
        "float v = *(i + x);",
        "atomicCAS(&c[i], 0u, 1u);",
        "float *p = i ? y : y + 1; p[0] = 1;",
        "float v = unknown(3);",
        "float *p = y; p = p + 1;",
        'asm("bar.sync 0;");',
        "float **p = &y; **p = 1;",
        "const volatile float *p = x; y[0] = p[0];",
        "y = y + 1;",
    ],
)
def test_what_cannot_be_followed_is_refused(body: str) -> None:
    with pytest.raises(Unclear):
        found(body)


def test_element_types() -> None:
    assert element_type("const unsigned char *") == "unsigned char"


def test_only_unconditional_accesses_happen_always() -> None:
    body = parsed(
        "float v = x[0] > 0 ? x[1] : 0; if (x[2] > 0 && x[3] > 0) y[4] = 1; { y[5] += 1; } "
        "for (int k = (int)x[6]; k < n; k++) y[k] = 0; if (n) return; y[8] = 2;"
    ).body
    places = [(kind, pointer, emit_expr(index)) for kind, (pointer, index) in always(body)]
    assert places[:5] == [
        ("read", "x", "0"), ("read", "x", "2"), ("read", "y", "5"), ("write", "y", "5"), ("read", "x", "6"),
    ]  # fmt: skip
    assert not any(index == "8" for _, _, index in places)
