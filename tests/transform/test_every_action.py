"""Every action on every kernel of the repository: nothing raises, everything passes the guard and compiles.

The kernels are the examples, the corpus's honest candidates, generated ones, and what the tests of actions are made of.
Where NVRTC is installed its front end takes all candidates, many to a compilation; elsewhere the host device's compiler
takes a sample. What ran right is the business of the tests of each action, and of benchmarks/moves.py --check.
"""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.errors import MissingToolError

MOVES = Path(__file__).parents[2] / "benchmarks" / "moves.py"
GENERATED, SEEDS = 44, (11, 12, 13)
EVERY = 9  # so many files of tests one gives its kernels, of some 1,500: each tries its own action on all of its own
MOST = 3  # moves of an action on a kernel: most have many of some kinds, which differ by a number
PARTS = 4
PAIRED = 12  # kernels on which two moves are tried, for each seed
GUARDED = 4  # every so many candidates pass the static guard, which takes longer than the compiler
HOST_SAMPLE = 60
ADDRESS = re.compile(r"\+= \(unsigned long long\) ?\w+;")
STATIC = re.compile(r"\bstatic int \w+;")

pytestmark = pytest.mark.xdist_group("every_action")  # what they have in common takes as long as the longest of them


@pytest.fixture(scope="module")
def moves() -> ModuleType:
    spec = importlib.util.spec_from_file_location("script_moves", MOVES)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def subjects(moves: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    from benchmarks.kernels.writer import of_generator

    files = sorted(Path(__file__).parent.rglob("test_*.py"))[1::EVERY]
    of_tests = moves.of_tests(tmp_path_factory.mktemp("kernels"), list(map(str, files)))
    assert len(of_tests) > 60
    found = [*moves.of_repository(), *of_generator(GENERATED, 0), *of_tests]
    return list(moves.unique(found))


def faults(moves: ModuleType, tried: list[tuple[Any, Any]]) -> list[str]:
    """What is wrong with attempts on their kernels, a line each."""
    told = [f"{s.name} {' '.join(a.moves)}: {a.detail}" for s, a in tried if a.status == "raised"]
    left = [(s, a) for s, a in tried if a.candidate is not None]
    for subject, attempt in left[::GUARDED]:
        refused = moves.refusal(subject, attempt.candidate)
        # Some tests are about kernels that count with an address, or keep a static variable.
        own = ADDRESS.search(subject.candidate.source) or STATIC.search(subject.candidate.source)
        told += [f"{subject.name} {' '.join(attempt.moves)}: {refused}"] if refused and not own else []
    for index, failure in failures_of(moves, [a.candidate for _, a in left]).items():
        subject, attempt = left[index]
        told.append(f"{subject.name} {' '.join(attempt.moves)}: {moves.first_error(failure.log)}")
    return told


def failures_of(moves: ModuleType, candidates: list[Any]) -> dict[int, Any]:
    """Indices of candidates that do not compile, of distinct sources."""
    first: dict[Any, int] = {}
    for index, candidate in enumerate(candidates):
        first.setdefault((candidate.source, candidate.plan.flags, candidate.plan.launches[0].entry), index)
    indices = list(first.values())
    try:
        toolchain = moves.SyntaxToolchain(moves.TARGET)
    except MissingToolError:
        toolchain, indices = HostToolchain(), random.Random(5).sample(indices, min(HOST_SAMPLE, len(indices)))
    found = {indices[i]: f for i, f in moves.failures(toolchain, [candidates[i] for i in indices]).items()}
    # NVRTC declares some names by itself (``all``), in some processes only: a kernel's own of that name is no fault.
    return {i: f for i, f in found.items() if "(declared implicitly)" not in str(f)}


@pytest.mark.slow
@pytest.mark.timeout(600)  # 20 s on a core of its own, the first part 15 s more
@pytest.mark.parametrize("part", range(PARTS))
def test_every_move_compiles(moves: ModuleType, subjects: list[Any], part: int) -> None:
    subjects = subjects[part::PARTS]
    whole = set(range(len(subjects))) - set(failures_of(moves, [s.candidate for s in subjects]))
    tried = [(subjects[i], attempt) for i in sorted(whole) for attempt in moves.first_level(subjects[i], MOST)]
    assert len(whole) > 0.9 * len(subjects)  # some tests are about kernels that do not compile
    assert len(tried) > 15 * len(whole)
    assert faults(moves, tried) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_moves_compile(moves: ModuleType, subjects: list[Any], seed: int) -> None:
    drawn = random.Random(seed).sample(subjects, PAIRED)
    broken = failures_of(moves, [s.candidate for s in drawn])
    drawn = [s for i, s in enumerate(drawn) if i not in broken]
    tried = [(s, attempt) for s in drawn for attempt in moves.pairs(s, 2, seed)]
    assert len(tried) > PAIRED
    assert faults(moves, tried) == []


def test_a_candidate_that_does_not_compile_is_found_among_others(moves: ModuleType) -> None:
    subject = moves.of_repository()[0]
    attempts = moves.first_level(subject)[:5]
    broken = attempts[2].candidate
    object.__setattr__(broken, "source", broken.source.replace("}", "undeclared = 1; }", 1))
    (told,) = faults(moves, [(subject, attempt) for attempt in attempts])
    assert "undeclared" in told
    assert attempts[2].moves[-1] in told
