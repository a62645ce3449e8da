"""What arrives later finds room: an action, a backend, a proposer and a counter work without what is there being told
of them but in the one place that lists them (and its page under docs/)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import fsr.backends
from fsr.backends.select import backends, open_device, parse_device, resolve_device
from fsr.evaluation.compiling import build
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.records import Candidate
from fsr.runs.kernel import Kernel, load_kernel
from fsr.search.proposal import Rules, Space, Trial
from fsr.search.proposers.deterministic import Deterministic
from fsr.search.proposers.protocol import Suggestion, View
from fsr.search.refinement import Refinement
from fsr.transform.protocol import Move, Subject
from fsr.transform.registry import all_actions
from tests.search.scripted import timed

ROOT = Path(__file__).parents[1]
SAXPY = ROOT / "examples" / "saxpy.cu"
TOY_BACKEND = """
from fsr.backends.backend import Gpu
from fsr.backends.host.backend import HostBackend
class ToyBackend(HostBackend):
    name = "plaything"
    numbered = True
    def gpus(self): return (Gpu("TOY-1", "Toy", "plaything_1"),)
    def compiles(self, target): return target.startswith("plaything_")
BACKEND = ToyBackend()
"""
# Nsight Compute's name of a counter, in a schema of one more line.
ONE_COUNTER_MORE = """
import sys
from importlib.machinery import SourceFileLoader
schema = SourceFileLoader.get_data
def with_one_more(self, path):
    data = schema(self, path)
    if path.endswith("features/schema.py"):
        place = b"    cycles: float | None"
        assert data.count(place) == 1
        line = b'    lanes: float | None = _said("lanes", "awake", 32, "toy__lanes", over=SUM)\\n'
        data = data.replace(place, line + place)
    return data
SourceFileLoader.get_data = with_one_more
SourceFileLoader.path_stats = lambda self, path: {"mtime": 0, "size": -1}  # no byte code of before
sys.dont_write_bytecode = True
from fsr.backends.cuda.counters import METRICS, read_report
from fsr.features.schema import DEFINITIONS, Features
table = '"ID","toy__lanes","sm__cycles_active.avg"\\n"","",""\\n"0","20","100"\\n"1","3","50"\\n'
features = Features(counters=read_report(table).counters)
assert METRICS["lanes"] == ["toy__lanes"]
assert Features.from_json(features.to_json()) == features
assert [d.meaning for d in DEFINITIONS if d.name == "lanes"] == ["awake"]
print(features.counters.lanes, features.counters.cycles)
"""


class Greeting:
    """An action: a comment at the end."""

    name, aims_at = "greeting", frozenset({"latency"})

    def moves(self, subject: Subject) -> Iterator[Move]:
        if "// hello" not in subject.candidate.source:
            yield Move(self.name, "kernel", (), 9.0)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        old = subject.candidate
        return replace(old, source=f"{old.source}\n// hello\n", actions=(*old.actions, move.name))


class Oracle:
    """A proposer: knows one candidate, and hears of every outcome."""

    name, thinking = "oracle", False

    def __init__(self, candidate: Candidate) -> None:
        self.ready: list[Candidate] = [candidate]
        self.heard: list[str] = []

    def suggest(self, view: View) -> Suggestion | None:
        return Suggestion(self.ready.pop(), None, "a dream", "dreamt", untrusted=True) if self.ready else None

    def asked(self, proposal: int, suggestion: Suggestion) -> None: ...

    def told(self, trial: Trial, parent: Trial | None) -> None:
        self.heard.append(trial.proposal.proposer)

    def close(self) -> None: ...


@pytest.fixture
def saxpy() -> Kernel:
    return load_kernel(SAXPY)


@pytest.fixture
def plaything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend in a folder of its own."""
    (tmp_path / "plaything").mkdir()
    (tmp_path / "plaything" / "__init__.py").touch()
    (tmp_path / "plaything" / "backend.py").write_text(TOY_BACKEND)
    monkeypatch.setattr(fsr.backends, "__path__", [*fsr.backends.__path__, str(tmp_path)])
    backends.cache_clear()
    yield
    backends.cache_clear()
    for name in [name for name in sys.modules if name.startswith("fsr.backends.plaything")]:
        del sys.modules[name]


@pytest.mark.usefixtures("plaything")
def test_a_backend_is_a_folder(saxpy: Kernel) -> None:
    device = parse_device("plaything:0")
    assert str(resolve_device(device)) == "plaything:0"
    assert open_device(device).info.name
    session = Session(SessionSpec(saxpy.contract, saxpy.baseline, "plaything:0", "sm_90", 0, str(saxpy.folder)))
    try:
        assert session.spec.predicted
        built = build(session.spec, saxpy.baseline)
        assert isinstance(built, Binaries)
        cases = session.search_cases()[:3]
        assert session.first_failure(built.run, saxpy.baseline, cases) == (3, None)
    finally:
        session.close()


def refinement(kernel: Kernel, proposers: list[object], actions: tuple[object, ...]) -> Refinement:
    space = Space(Rules(kernel.contract), actions, lambda name, fault: None)  # type: ignore[arg-type]
    found = Refinement(kernel.baseline, space, proposers)  # type: ignore[arg-type]
    first = found.ask()
    assert first is not None
    found.tell(first.id, timed(1000.0))
    return found


def test_an_action_is_one_more_in_the_list(saxpy: Kernel) -> None:
    search = refinement(saxpy, [Deterministic(0)], (*all_actions(), Greeting()))
    proposals = [search.ask() for _ in range(3)]
    greeted = [p for p in proposals if p is not None and p.candidate.actions == ("greeting@kernel",)]
    assert len(greeted) == 1  # what promises most comes early
    search.tell(greeted[0].id, timed(500.0))
    assert search.archive.best is not None
    assert search.archive.best.proposal.candidate.actions == ("greeting@kernel",)


def test_a_proposer_is_an_object(saxpy: Kernel) -> None:
    better = replace(saxpy.baseline, source=f"{saxpy.baseline.source}// dreamt\n")
    oracle = Oracle(better)
    search = refinement(saxpy, [Deterministic(0), oracle], all_actions())
    proposals = [p for p in (search.ask() for _ in range(8)) if p is not None]
    (own,) = [p for p in proposals if p.proposer == "oracle"]
    assert (own.candidate.source, own.untrusted) == (better.source, True)
    search.tell(own.id, timed(100.0))
    assert search.archive.best is not None
    assert search.archive.best.proposal.id == own.id
    assert "oracle" in oracle.heard


def test_a_counter_is_one_line_of_the_schema() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ONE_COUNTER_MORE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["23.0", "150.0"]
