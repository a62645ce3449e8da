"""The corpus of cheats: every file must be refused, and every honest file beside them must not be."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.evaluation.jobs import compile_task, evaluate_task
from fsr.evaluation.promotion import promote_task
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, PromoteRequest, PromotionPart, SessionSpec
from fsr.records import Candidate, Outcome, Status
from fsr.testgen.candidate_file import read_candidate, read_notes

QUARTER = 4
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
CHEATS = sorted(HERE.glob("*.cu"))
HONEST = sorted((HERE / "honest").glob("*.cu"))


@lru_cache(maxsize=1)
def original(name: str) -> tuple[Contract, Candidate]:
    """An example, timed at a quarter of its first size: a GPU runs the corpus at the whole (tests/gpu)."""
    contract = load_contract(EXAMPLES / f"{name}.cu")
    first, *others = contract.sizes
    small = replace(first, timed=tuple(n // QUARTER for n in first.timed))
    return replace(contract, sizes=(small, *others)), Candidate((EXAMPLES / f"{name}.cu").read_text(), contract.plan)


def candidate_of(path: Path, contract: Contract) -> Candidate:
    """A file of the corpus; what it takes for the timed size is that of the contract here."""
    found = read_candidate(path, contract)
    return replace(found, source=found.source.replace("n == 16777216", f"n == {16777216 // QUARTER}"))


def judged(path: Path, attacked: str, device: str = "host") -> Outcome:
    """The way of a candidate through the evaluation: guard, compile, tests, promotion; the last outcome."""
    contract, baseline = original(attacked)
    candidate = candidate_of(path, contract)
    spec = SessionSpec(contract, baseline, device, "sm_90", seed=11, folder=str(EXAMPLES))
    built = compile_task(CompileRequest(spec, candidate))
    if not isinstance(built, Binaries):
        return built
    try:
        outcome = evaluate_task(EvaluateRequest(spec, candidate, built))
        if outcome.status < Status.CORRECT:
            return outcome
        return promote_task(PromoteRequest(spec, candidate, built, part=PromotionPart.TESTS, own_tested=True))
    except DeviceFault as fault:  # the worker process would be lost and replaced
        if not fault.fatal:
            raise
        return Outcome(Status.CRASHED, "tests", evidence={"kind": fault.fault.kind, "detail": fault.fault.detail})


def by_example(paths: list[Path], key: str) -> list[object]:
    """Files that attack the same example stand together, so that its session is opened once."""
    notes = {path: read_notes(path) for path in paths}
    ordered = sorted(paths, key=lambda p: (notes[p][key][0], p.name))
    return [pytest.param(path, notes[path][key][0], id=path.stem) for path in ordered]


@pytest.mark.parametrize(("path", "attacked"), by_example(CHEATS, "attacks"))
def test_every_cheat_is_refused(path: Path, attacked: str) -> None:
    outcome = judged(path, attacked)
    assert outcome.status < Status.CORRECT, f"accepted: {outcome}"
    assert outcome.evidence, "a refusal says why"
    by_guard = read_notes(path)["refused by"][0].startswith("guard")
    assert (outcome.stage == "guard") == by_guard, f"refused at {outcome.stage}: {outcome.evidence}"


@pytest.mark.parametrize(("path", "attacked"), by_example(HONEST, "honest"))
def test_honest_aggressive_kernels_pass(path: Path, attacked: str) -> None:
    outcome = judged(path, attacked)
    assert outcome.status >= Status.CORRECT, outcome.evidence


def test_the_corpus_covers_at_least_24_of_the_36_cheats_and_each_file_says_how() -> None:
    numbers = set()
    for path in CHEATS:
        notes = read_notes(path)
        assert {"cheat", "attacks", "how", "refused by"} <= set(notes), path.name
        assert path.name.startswith(f"{int(notes['cheat'][0]):02d}_")
        numbers.add(int(notes["cheat"][0]))
    assert len(numbers) >= 24
    assert numbers <= set(range(1, 37))


def test_the_table_in_the_readme_names_every_file() -> None:
    table = (HERE / "README.md").read_text()
    assert [p.name for p in CHEATS if f"`{p.name}`" not in table] == []
    assert [p.name for p in HONEST if f"`{p.name}`" not in table] == []
