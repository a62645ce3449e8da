"""Declarations move to where their variable first gets a value, and only where nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.source.emit import emit_kernel
from fsr.source.narrowing import narrowed
from fsr.source.parse import parse_kernels


def body_of(text: str) -> str:
    kernel = parse_kernels(f"__global__ void k(float *y, int n) {{ {text} }}")["k"]
    return " ".join(emit_kernel(replace(kernel, body=narrowed(kernel.body))).split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int i; for (i = 0; i < n; i++) y[i] = i;", "for (int i = 0; i < n; ++i)"),
        ("int i = 0; for (i = 0; i < n; i++) y[i] = i;", "for (int i = 0; i < n; ++i)"),
        ("float s = -1.0f; for (int i = 0; i < n; i++) { s = y[i]; y[i] = s * s; }", "float s = y[i];"),
        ("int a = 7, b; b = n; a = b + 1; y[a] = b;", "int b = n; int a = b + 1;"),
    ],
)
def test_a_variable_is_declared_where_it_is_set(text, wanted):
    assert wanted in body_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "int i = 0; for (int j = 0; j < n; j++) { if (j > 3) i = j; y[j] = i; }",  # what another turn left
        "int i = n; i = 2; y[i] = 0.0f;",  # more than a number: it may be a call
        "int i = 0; y[i] = 1.0f; i = 2; y[i] = 2.0f;",
        "int i = 0; i = i + n; y[i] = 1.0f;",
        "int i = 3; int *p = &i; i = 1; y[*p] = 1.0f;",
    ],
)
def test_a_value_that_somebody_reads_stays(text):
    assert " ".join(text.split()).split(";")[0] in body_of(text)
