"""Experience from run to run: kept, followed, settled when a run begins, and left alone without a cache."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from fsr.cache.experience import keep, kept
from fsr.cache.store import Store
from fsr.runs.learning import FILE, Learning
from fsr.runs.log import EVENTS, read_events
from fsr.runs.options import RefineOptions
from fsr.runs.run import Run
from fsr.search.experience import Experience
from fsr.settings import Settings
from tests.commandline import ROW_SUM
from tests.search.learned import gain, learned

EVALUATIONS = 9


def home(folder: Path, cache: Path | None = None) -> Settings:
    """A home of its own, with a copy of a cache."""
    folder.mkdir(parents=True)
    if cache is not None:
        shutil.copy(cache, folder / "cache.db")
    return Settings(str(folder), str(folder / "cache.db"))


def run_of(folder: Path, settings: Settings, text: str = ROW_SUM, **more: Any) -> Run:
    path = folder / "kernel.cu"
    path.write_text(text)
    options: dict[str, Any] = {"evaluations": EVALUATIONS, "workers": 1, **more}
    return Run(RefineOptions(path, "host", **options), settings=settings)


def events(run: Run, kind: str) -> list[dict[str, Any]]:
    return [event for event in read_events(run.folder) if event["kind"] == kind]


def asked(run: Run) -> list[str]:
    return [event["hash"] for event in events(run, "ask")]


def finished(run: Run) -> Run:
    assert run.start().wait(280) is not None
    return run


def held(settings: Settings) -> list[Experience]:
    with Store(Path(settings.cache)) as store:
        return [Experience.from_json(told) for told in kept(store)]


def cut_off(run: Run, copy: Path, told: int) -> Path:
    """The folder of a run as a kill would have left it after that outcome."""
    shutil.copytree(run.folder, copy)
    lines = (copy / EVENTS).read_bytes().splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if (e := json.loads(line))["kind"] == "tell" and e["id"] == told)
    (copy / EVENTS).write_bytes(b"".join(lines[: last + 1]))
    return copy


@pytest.mark.timeout(900)
def test_what_a_run_learned_is_followed_by_the_next_and_settled_when_it_begins(tmp_path: Path) -> None:
    first = home(tmp_path / "first")
    before = finished(run_of(tmp_path, first))
    (left,) = held(first)
    assert (left.basis, left.hardware) == ("predicted", "sm_90")
    assert not any("earlier run" in note for note in before.state.notes)
    assert 0 < len(left.moves) <= EVALUATIONS
    assert left.traits["folds"] == "sum"
    assert "row_sum" not in json.dumps(left.to_json())

    other = ROW_SUM.replace("sum += x[row * cols + j];", "sum += x[row * cols + j] * x[row * cols + j];")
    one = finished(run_of(tmp_path, home(tmp_path / "one", tmp_path / "first" / "cache.db"), other))
    assert one.result is not None
    assert any("follows 1 earlier run of 1 kernel" in note for note in one.result.notes)
    assert any("experience" in event["provenance"] for event in events(one, "ask"))

    cut = cut_off(one, Path(one.folder.parent) / "cut", 3)
    came_in = learned(*(gain(m.where.action, 1.0, 50.0) for m in left.moves), kernel="new", traits=left.traits)
    with Store(tmp_path / "one" / "cache.db") as store:
        keep(store, "another run", came_in.to_json())
    resumed = finished(Run.resume(cut.name, settings=Settings(str(tmp_path / "one"), str(tmp_path / "one/cache.db"))))
    assert resumed.result is not None
    assert any("follows 1 earlier run of 1 kernel" in note for note in resumed.result.notes)  # and not what came in
    assert (resumed.folder / FILE).read_bytes() == (one.folder / FILE).read_bytes()
    assert {e.kernel for e in held(Settings("", str(tmp_path / "one/cache.db")))} > {"new", left.kernel}

    stopped = home(tmp_path / "stopped", tmp_path / "first" / "cache.db")
    half = run_of(tmp_path, stopped, other)
    tells = itertools.count()  # in which order they come is the device's affair
    half.subscribe(lambda event: half.stop() if event["kind"] == "tell" and next(tells) == 2 else None)
    assert len(asked(finished(half))) < len(asked(one))
    assert len(held(stopped)) == 2  # what it had learned by then


@pytest.mark.timeout(300)
def test_without_a_cache_nothing_is_read_or_left(tmp_path: Path) -> None:
    settings = home(tmp_path / "home")
    with Store(Path(settings.cache)) as store:
        keep(store, "earlier", learned(gain("row-per-warp", 4.0, 0.1)).to_json())
    run = finished(run_of(tmp_path, settings, use_cache=False, evaluations=1))
    assert len(held(settings)) == 1
    assert not (run.folder / FILE).exists()
    assert events(run, "start")[0]["learned"] == ""
    assert run.result is not None
    assert not any("earlier" in note for note in run.result.notes)


def test_a_folder_says_what_a_run_began_with_or_nothing(tmp_path: Path) -> None:
    known = Learning(learned(), Learning.begun(learned(), None).prior)
    digest = known.write(tmp_path)
    assert Learning.read(tmp_path, digest) == known
    assert Learning.read(tmp_path, "0" * 64) is None
    (tmp_path / FILE).write_text("{}")
    assert Learning.read(tmp_path, digest) is None
    assert Learning.read(tmp_path / "nowhere", digest) is None
