"""Folds are recognised in every spelling, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from fsr.analysis.accumulators import accumulators
from fsr.source.form import For
from fsr.source.parse import parse_kernels
from fsr.source.walk import names_changed

OUTER = frozenset(["a", "b", "best"])


def folds(body: str) -> dict[str, str] | None:
    loop_text = f"for (int j = 0; j < n; j++) {{ {body} }}"
    text = f"__global__ void k(float *x, int n) {{ float a = 0, b = 1, best = 0; {loop_text} }}"
    loop = parse_kernels(text)["k"].body[-1]
    assert isinstance(loop, For)
    found = accumulators(loop.body)
    return found if names_changed(loop.body) & OUTER <= found.keys() else None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a += x[j];", {"a": "sum"}),
        ("a -= x[j];", {"a": "sum"}),
        ("a = a + x[j]; b = x[j] * b;", {"a": "sum", "b": "product"}),
        ("a = fmaf(x[j], x[j], a);", {"a": "sum"}),
        ("best = fmaxf(x[j], best);", {"best": "max"}),
        ("best = min(best, x[j]);", {"best": "min"}),
        ("if (x[j] > best) best = x[j];", {"best": "greatest"}),
        ("if (best > x[j]) { best = x[j]; }", {"best": "least"}),
        ("best = x[j] < best ? x[j] : best;", {"best": "least"}),
        ("if (x[j] > 0) { a += 1; for (int k = 0; k < 3; k++) a += x[k]; }", {"a": "sum"}),
        ("float v = x[j];", {}),
        ("a = a - x[j];", {"a": "sum"}),
        ("best = best > x[j] ? best : x[j];", {"best": "max"}),
        ("a = x[j] >= a ? a : x[j];", {"a": "min"}),
        ("float t = 0; t += x[j]; a += t;", {"a": "sum"}),
    ],
)
def test_spellings_of_folds(body: str, expected: dict[str, str]) -> None:
    assert folds(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "a += x[j]; x[j] = a;",  # looked at meanwhile
        "a += a * x[j];",
        "a = x[j];",  # the last one wins
        "a += x[j]; a *= 2.0f;",  # two operators
        "a = x[j] - a;",
        "b += a; a += 1;",
        "a += x[j]; float a = 2;",
        'a += x[j]; asm("nop;" :: "f"(a));',
        "float best[4]; best[j] += 1;",
        "if (a < 10.0f) a += x[j];",
        "if (x[j] > best) best = 2.0f;",
        "if (x[j] > best) { best = x[j]; b = j; }",
        "best = fmaxf(best, best * x[j]);",
    ],
)
def test_other_changes_are_no_folds(body: str) -> None:
    assert folds(body) is None
