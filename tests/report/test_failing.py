"""Evidence in words."""

from __future__ import annotations

from fsr.report.failing import failure_lines

WRONG = {
    "case": "sizes 32 (shrunk)", "sizes": {"n": 4, "m": 4}, "family": "zeros", "seed": 75, "argument": "hit",
    "kind": "value", "index": [0], "got": 0.0, "expected": 1.0, "worst_error": 1.0, "bound": 0.0, "wrong": 1, "of": 4,
}  # fmt: skip
CASE = "  case         sizes 32 (shrunk): n=4, m=4; values 'zeros', seed 75"


def test_a_wrong_element_is_a_sentence() -> None:
    assert failure_lines(WRONG) == [CASE, "  wrong        hit[0] is 0, expected 1 (1 of 4 elements)"]
    near = WRONG | {"got": 1.0001, "worst_error": 1e-4, "bound": 4e-6, "remark": "x has no limits"}
    assert failure_lines(near)[1:] == [
        "  wrong        hit[0] is 1.0001, expected 1 (off by 0.0001, allowed 4e-06; 1 of 4 elements)",
        "  remark       x has no limits",
    ]
    left = WRONG | {"kind": "unwritten", "got": "nan", "worst_error": "inf"}
    assert (
        failure_lines(left)[1]
        == "  wrong        hit[0] was never written, or from outside a buffer, expected 1 (1 of 4 elements)"
    )
    wild = WRONG | {"kind": "non-finite", "got": "nan", "expected": -0.0, "worst_error": "inf"}
    assert failure_lines(wild)[1] == "  wrong        hit[0] is nan, expected -0 (1 of 4 elements)"


def test_a_fault_names_its_line() -> None:
    fault = {key: WRONG[key] for key in ("case", "sizes", "family", "seed")} | {
        "kind": "out-of-bounds", "detail": "read of 1 bytes", "line": 6,
    }  # fmt: skip
    assert failure_lines(fault) == [CASE, "  fault        out-of-bounds: read of 1 bytes (line 6)"]


def test_what_is_no_case_is_told_as_it_is() -> None:
    assert failure_lines({"detail": "a name", "line": None}) == ["  detail       a name"]
