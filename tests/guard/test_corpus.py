"""The guard by class: variants that must not pass, honest ones that must."""

from __future__ import annotations

import pytest

from fsr.guard.check import guard
from fsr.records import Candidate, Launch, Plan
from tests.guard.corpus import KERNEL, RIGHT, WRONG, source

LAUNCH = Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y", "n"))
BASE = Candidate(KERNEL.format(""), Plan((LAUNCH,)))


def cases(corpus: dict[str, tuple[str, ...]]) -> list[object]:
    return [pytest.param(case, id=f"{kind} {i}") for kind, found in corpus.items() for i, case in enumerate(found)]


@pytest.mark.parametrize("case", cases(WRONG))
def test_wrong(case: str) -> None:
    assert guard(Candidate(source(case), Plan((LAUNCH,))), BASE) is not None


@pytest.mark.parametrize("case", cases(RIGHT))
def test_right(case: str) -> None:
    assert guard(Candidate(source(case), Plan((LAUNCH,))), BASE) is None


@pytest.mark.parametrize(
    ("flag", "use"),
    [("-Dkeep=static", "keep int calls; calls++;"), ("-Dnow=clock64", "if (now() & 1) return;"),
     ("-Dsay=printf", "say(\"x\");"), ("-Dhere=__x86_64__", "if (here) return;"), ("-DE=_Exit", "E(0);")],
)  # fmt: skip
def test_flags_rename_nothing_past_the_guard(flag: str, use: str) -> None:
    assert guard(Candidate(source(use), Plan((LAUNCH,), (), (flag,))), BASE) is not None


def test_what_the_original_does_may_be_done() -> None:
    for kind in ("asks where it is", "calls the host", "keeps state"):
        for case in WRONG[kind]:
            if "#" not in case and "struct S" not in case:
                own = Candidate(source(case), Plan((LAUNCH,)))
                assert guard(own, own) is None, case
