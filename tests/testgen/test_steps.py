"""Elements that lie on a step (a threshold, a count until a value escapes): rounding alone decides which side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fsr.contract.model import Argument, Contract, Size, Tolerance
from fsr.records import Case, Launch, Plan, Role, ScalarValue
from fsr.testgen.compare import STEPS_SHARE, compare
from fsr.testgen.oracle import LOUD_RUNS, Asking, Expected, Once, expect
from fsr.testgen.values import Array, CaseData, build

N = 4 * STEPS_SHARE
PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("s", "y")),))
ARGS = (Argument("s", "float32", Role.SCALAR, value="1.5"), Argument("y", "float32", Role.OUT, ("n",)))
CONTRACT = Contract("k", (Size("n", 0, N, (5,)),), ARGS, PLAN, Tolerance())
CASE = Case("c", (("n", N),), "normal", 3)
COUNTS = (np.arange(N) % 40).astype(np.float32)


def expected(loud: Array | None) -> tuple[Expected, list[dict[str, ScalarValue]]]:
    """What is known where the original, rounding badly, gives ``loud`` in its last run, and the scalars of these."""
    asked = list[dict[str, ScalarValue]]()

    def louder(_: Case, data: CaseData) -> Mapping[str, Array]:
        asked.append(dict(data.scalars))
        return {"y": loud if loud is not None and len(asked) == LOUD_RUNS else COUNTS.astype(np.float64)}

    run = Once(lambda _, data: {"y": COUNTS.copy()})
    same = {"y": COUNTS.astype(np.float64)}
    return expect(
        CONTRACT, CASE, run, precise=lambda c, d: same, noisy=lambda c, d: same, how=Asking(loud=louder)
    ), asked


def moved(*places: int, by: float = 1.0) -> Array:
    found = COUNTS.copy()
    found[list(places)] += np.float32(by)
    return found


def is_right(what: Expected, got: Array) -> bool:
    return compare(CONTRACT, CASE, {"y": got}, what) == []


def test_an_answer_that_the_original_itself_may_give_is_right() -> None:
    what, asked = expected(moved(7, 500).astype(np.float64))
    assert is_right(what, moved(7, 500))
    assert is_right(what, moved(500))
    assert len(asked) == LOUD_RUNS  # no more for a second candidate


def test_another_answer_is_wrong() -> None:
    loud = moved(7).astype(np.float64)
    assert not is_right(expected(loud)[0], moved(7, by=2.0))  # farther than the original goes
    assert not is_right(expected(loud)[0], moved(7, by=0.5))  # not so far
    assert not is_right(expected(loud)[0], moved(8))
    assert not is_right(expected(None)[0], moved(7))


def test_many_are_no_chance() -> None:
    several = tuple(range(0, N, N // 5))
    what, asked = expected(moved(*several).astype(np.float64))
    assert len(several) > N // STEPS_SHARE
    assert not is_right(what, moved(*several))
    assert not asked


def test_scalars_give_other_samples_where_there_is_nothing_else() -> None:
    what, asked = expected(None)
    is_right(what, moved(7))
    values = [one["s"].value for one in asked]
    assert values[0] == 1.5
    assert len(set(values)) == LOUD_RUNS
    assert all(abs(v - 1.5) <= 1.5 * 2.0**-39 for v in values)
    assert build(CONTRACT, CASE).scalars["s"].value == 1.5
