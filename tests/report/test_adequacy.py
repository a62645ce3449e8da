"""What a person reads of an adequacy measurement."""

from __future__ import annotations

from fsr.report.adequacy import adequacy_summary

ONE = {"name": "bound-short@3:4", "why": "the same bits in 61 further cases", "diff": "-i < n\n+i < n - 1"}
RESULT = {
    "status": "inadequate", "score": 0.75, "mutants": 6, "operators": 5, "killed": 3, "survived": 1, "equivalent": 1,
    "not_compiled": 1, "added_cases": 2, "failure": None, "note": "4 mutants of 6 tried: out of time",
    "survivors": [ONE], "equivalents": [{**ONE, "name": "initial-zero@1:1"}],
}  # fmt: skip


def test_survivors_show_their_diff_and_equivalents_their_reason() -> None:
    lines = adequacy_summary(RESULT).splitlines()
    assert lines[0] == "inadequate: 75.0 % of the mutants die"
    assert "3 killed, 1 survived, 1 equivalent as far as seen, 1 not compiled" in lines[1]
    assert "  note: 4 mutants of 6 tried: out of time" in lines
    at = lines.index("survived bound-short@3:4: the same bits in 61 further cases")
    assert lines[at + 1 : at + 3] == ["    -i < n", "    +i < n - 1"]
    assert lines[-1] == "equivalent as far as seen initial-zero@1:1: the same bits in 61 further cases"


def test_without_a_judged_mutant_there_is_no_score() -> None:
    assert adequacy_summary({**RESULT, "score": None, "survivors": []}).startswith("inadequate: no mutant was judged")
