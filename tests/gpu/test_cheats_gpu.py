"""The corpus of cheats on a GPU: none may be accepted, every honest file must be, all the way through the final.

The host version is tests/cheats/test_cheats.py. Here candidates run in worker processes, as in a refinement: one that
loses the GPU costs its process only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fsr.backends.cuda.gpus import driver_gpus
from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.evaluation.faults import outcome_of_fault
from fsr.evaluation.spec import Binaries, CompileRequest, EvaluateRequest, PromoteRequest, SessionSpec
from fsr.records import Candidate, Outcome, Status
from fsr.testgen.candidate_file import read_candidate, read_notes
from fsr.workers.local import local_workers
from fsr.workers.protocol import Task, WorkerFault, Workers

ROOT = Path(__file__).parents[2]
EXAMPLES, CORPUS = ROOT / "examples", ROOT / "tests" / "cheats"
DEVICE = "cuda:0"
FINAL_BUDGET_S = 2.0


@cache
def original(name: str) -> tuple[Contract, Candidate]:
    path = EXAMPLES / f"{name}.cu"
    contract = load_contract(path)
    return contract, Candidate(path.read_text(), contract.plan)


def by_example(folder: Path, key: str) -> list[object]:
    """Files for the same example stand together, so that its session is opened once."""
    noted = sorted((read_notes(path)[key][0], path) for path in folder.glob("*.cu"))
    return [pytest.param(path, example, id=path.stem) for example, path in noted]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with local_workers(1, 1) as pool:
        yield pool


def result_of(workers: Workers, pool: str, function: str, payload: object, limit_s: float, fresh: bool = False):
    """What a task returned; a lost worker as the outcome of its candidate."""
    task = Task(f"fsr.evaluation.{function}", payload, limit_s, fresh=fresh)
    ticket = workers.submit("compile" if pool == "compile" else "device", task)
    while True:
        for completion in workers.wait(0.5):
            if completion.ticket == ticket:
                told = completion.result
                if isinstance(told, WorkerFault):
                    return outcome_of_fault(told.kind, told.detail, told.error, pool, completion.seconds)
                return told


def judged(workers: Workers, path: Path, example: str, device: str, target: str) -> Outcome:
    """The last outcome on the way through guard, compiler, tests, sanitizers and the paired final."""
    contract, baseline = original(example)
    candidate = read_candidate(path, contract)
    spec = SessionSpec(contract, baseline, device, target, seed=11, folder=str(EXAMPLES))
    built = result_of(workers, "compile", "jobs:compile_task", CompileRequest(spec, candidate), 90)
    if not isinstance(built, Binaries):
        return built
    request = EvaluateRequest(spec, candidate, built)
    outcome = result_of(workers, "device", "jobs:evaluate_task", request, 120)
    if outcome.status < Status.CORRECT:
        return outcome
    final = PromoteRequest(spec, candidate, built, FINAL_BUDGET_S, own_tested=True)
    return result_of(workers, "device", "promotion:promote_task", final, 300, fresh=True)


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("path", "example"), by_example(CORPUS, "attacks"))
def test_every_cheat_is_refused_on_the_gpu(workers: Workers, path: Path, example: str) -> None:
    outcome = judged(workers, path, example, DEVICE, driver_gpus()[0].arch)
    assert outcome.status < Status.CORRECT, f"accepted: {outcome.status.name} {outcome.evidence}"
    assert outcome.evidence, "a refusal says why"


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("path", "example"), by_example(CORPUS / "honest", "honest"))
def test_every_honest_kernel_is_accepted_on_the_gpu(workers: Workers, path: Path, example: str) -> None:
    outcome = judged(workers, path, example, DEVICE, driver_gpus()[0].arch)
    assert outcome.status >= Status.CORRECT, outcome.evidence
    verdict, said = outcome.evidence["verdict"], outcome.evidence["sanitizers"]
    assert isinstance(verdict, dict)
    assert verdict["basis"] == "measured"
    assert isinstance(said, dict)
    assert all(word == "silent" or str(word).startswith("not available") for word in said.values()), said
    print(f"{path.stem}: {verdict['speedup']:.2f}x {verdict['ci95']}, {said}")
