"""What a kernel computes is found out beside the qualification of its original."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

from fsr.computation.expression import Const, Expr, Op
from fsr.lifting import elsewhere
from fsr.lifting.found import Lifting
from fsr.lifting.lift import lift
from fsr.runs import lifting_beside, restating
from fsr.runs.budget import Budget
from fsr.runs.kernel import Kernel, load_kernel
from fsr.search.proposal import Rules, Space
from fsr.transform.computed.action import FROM_COMPUTATION
from fsr.transform.registry import all_actions
from tests.commandline import ROW_SUM

CONSEQUENCE = "its text is rewritten, and no kernel is written anew from what it computes"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    (tmp_path / "kernel.cu").write_text(ROW_SUM)
    return load_kernel(tmp_path / "kernel.cu", None)


def test_it_goes_on_beside_the_caller_who_waits_for_it_ticking(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    ticked = threading.Event()

    def slowly(*_: object, **__: object) -> Lifting:
        ticked.wait(60)
        return Lifting(None, "it sorts")

    monkeypatch.setattr(restating, "lift", slowly)
    found = restating.Restating(kernel, Budget(300.0))
    notes: list[str] = []
    assert found.lifted(ticked.set, notes) is None
    assert notes == [f"what the original computes is not known: it sorts; {CONSEQUENCE}"]


def test_one_that_takes_too_long_is_not_waited_for(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = [0.0], threading.Event()
    monkeypatch.setattr(restating, "lift", lambda *_, **__: ended.wait(60))
    found = restating.Restating(kernel, Budget(100.0, clock=lambda: clock[0]))

    def tick() -> None:
        clock[0] += 5.0

    notes: list[str] = []
    assert found.lifted(tick, notes) is None
    assert (notes, found.thinking) == ([], True)
    assert clock[0] <= 45.0
    found.given_up(notes)
    assert (notes, found.thinking) == (
        [f"what the original computes is not known: finding it out took too long; {CONSEQUENCE}"],
        False,
    )
    ended.set()


def test_a_gpu_hardly_waits_for_it(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = [0.0], threading.Event()
    monkeypatch.setattr(restating, "lift", lambda *_, **__: ended.wait(60))
    found = restating.Restating(kernel, Budget(100.0, clock=lambda: clock[0]), predicted=False)

    def tick() -> None:
        clock[0] += 1.0

    assert found.lifted(tick, []) is None
    assert (clock[0] <= 6.0, found.thinking) == (True, True)
    ended.set()


def test_what_is_found_later_is_told_once(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended, known = [0.0], threading.Event(), lift(kernel.contract, kernel.baseline)
    assert known.computation is not None

    def late(*_: object, **__: object) -> Lifting:
        ended.wait(60)
        return known

    monkeypatch.setattr(restating, "lift", late)
    found = restating.Restating(kernel, Budget(100.0, clock=lambda: clock[0]))
    clock[0] = 90.0
    notes: list[str] = []
    assert found.lifted(lambda: None, notes) is None
    assert found.late(notes) is None
    ended.set()
    while (told := found.late(notes)) is None:
        assert found.thinking
    assert told is known
    assert found.late(notes) is None
    found.given_up(notes)
    assert (notes, found.thinking) == ([], False)


def test_a_run_that_is_too_short_does_without(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restating, "lift", lambda *_, **__: pytest.fail("asked"))
    found = restating.Restating(kernel, Budget(3.0))
    assert found.lifted(lambda: None, []) is None
    assert not found.thinking


def test_it_ends_with_the_run(kernel: Kernel) -> None:
    """In the middle of its work, and before it has begun."""
    found = restating.Restating(kernel, Budget(300.0))
    thread = found._thread
    found.close()
    assert not thread.is_alive()
    short = restating.Restating(kernel, Budget(1.0))
    short.close()


def test_what_nobody_waits_for_stops_at_once(kernel: Kernel) -> None:
    known = lift(kernel.contract, kernel.baseline, stopped=lambda: True)
    assert (known.computation, known.why, known.alone) == (None, "it was stopped", ())


def test_the_space_answers_anew_where_that_is_known(kernel: Kernel) -> None:
    """What it was asked before, it was asked under other rules."""
    space = Space(Rules(kernel.contract), all_actions())
    before = {m.name for _, m in space.moves(kernel.baseline)}
    known = lift(kernel.contract, kernel.baseline).computation
    later = {m.name for _, m in space.under(Rules(kernel.contract, computation=known)).moves(kernel.baseline)}
    assert later > before
    assert {name.split("@")[0] for name in later - before} & {a.name for a in FROM_COMPUTATION}


def test_a_fault_of_ours_is_a_note(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object, **__: object) -> Lifting:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(restating, "lift", faulty)
    found, notes = restating.Restating(kernel, Budget(100.0)), list[str]()
    assert found.lifted(lambda: None, notes) is None
    told = "a fault of fsr while it was found out (IndexError: tuple index out of range); please report it"
    assert notes == [f"what the original computes is not known: {told}; {CONSEQUENCE}"]


def test_beside_other_cores_a_process_of_its_own_finds_the_same(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restating, "lift", lambda *_, **__: pytest.fail("thought in this process"))
    found = restating.Restating(kernel, Budget(300.0), beside=True).lifted(lambda: None, notes := [])
    assert notes == []
    known = lift(kernel.contract, kernel.baseline)
    assert found is not None
    assert found.computation == known.computation is not None


def test_a_process_beside_ends_with_the_run(kernel: Kernel) -> None:
    found = restating.Restating(kernel, Budget(300.0), beside=True)
    found.close()
    assert not found._thread.is_alive()


def test_what_dies_beside_the_run_costs_the_lifting_alone(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifting_beside, "_TASK", "os:_exit")
    notes: list[str] = []
    assert restating.Restating(kernel, Budget(300.0), beside=True).lifted(lambda: None, notes) is None
    assert len(notes) == 1
    assert "a fault of fsr while it was found out" in notes[0]


def test_a_lifting_nested_deeper_than_pickling_goes_is_handed_over() -> None:
    deep: Expr = Const(1.0, "float32")
    for _ in range(600):
        deep = Op("neg", (deep,))
    found = Lifting(None, "x", alone=(deep,))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elsewhere, "lift", lambda *_, **__: found)
        back = pickle.loads(elsewhere.lift_task(elsewhere.LiftRequest(None, None, 1.0, 1.0)))  # type: ignore[arg-type]
    assert back.why == "x"
