"""The data of cases, built once a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsr.contract.load import load_contract
from fsr.evaluation.testing import DataShelf, Runnable
from fsr.records import Case
from fsr.testgen.values import build

EXAMPLE = Path(__file__).parents[2] / "examples" / "saxpy.cu"
CONTRACT = load_contract(EXAMPLE)
BYTES = 2 * 4 * 1000


def case(seed: int, n: int = 1000) -> Case:
    return Case(f"case {seed}", (("n", n),), "normal", seed)


def test_the_same_case_and_poison_give_the_same_arrays_again() -> None:
    shelf = DataShelf()
    first = shelf(CONTRACT, case(1), 1)
    assert shelf(CONTRACT, case(1), 1) is first
    assert shelf(CONTRACT, case(1), 2) is not first
    fresh = build(CONTRACT, case(1), 1)
    for name, array in first.arrays.items():
        assert array.tobytes() == fresh.arrays[name].tobytes()


def test_devices_may_not_keep_copies_across_candidates() -> None:
    data = DataShelf()(CONTRACT, case(1), 1)
    assert all(array.flags.writeable for array in data.arrays.values())


@pytest.mark.timeout(60)
def test_running_a_case_leaves_its_data_as_they_were() -> None:
    from fsr.backends.host.compiler import HostToolchain
    from fsr.backends.host.device import open_host_device
    from fsr.evaluation.testing import run_once
    from fsr.records import Candidate, Image

    image = HostToolchain().compile(Candidate(EXAMPLE.read_text(), CONTRACT.plan))
    assert isinstance(image, Image)
    data = DataShelf()(CONTRACT, case(3), 1)
    before = {name: array.tobytes() for name, array in data.arrays.items()}
    device = open_host_device()
    got = run_once(Runnable(device, image, CONTRACT.plan, CONTRACT), case(3), data)
    device.close()
    assert {name: array.tobytes() for name, array in data.arrays.items()} == before
    assert got["y"].tobytes() != before["y"]


def test_the_least_recently_used_goes_when_the_shelf_is_full() -> None:
    shelf = DataShelf(limit_bytes=10 * BYTES)
    first, second = shelf(CONTRACT, case(0), 1), shelf(CONTRACT, case(1), 1)
    for seed in range(2, 10):
        shelf(CONTRACT, case(seed), 1)
    assert shelf(CONTRACT, case(0), 1) is first
    shelf(CONTRACT, case(10), 1)
    assert shelf(CONTRACT, case(0), 1) is first
    again = shelf(CONTRACT, case(1), 1)
    assert again is not second
    assert np.array_equal(again.arrays["x"], second.arrays["x"])


def test_a_huge_case_is_not_kept_and_pushes_nothing_out() -> None:
    shelf = DataShelf(limit_bytes=10 * BYTES)
    small = shelf(CONTRACT, case(1), 1)
    assert shelf(CONTRACT, case(2, 5000), 1) is not shelf(CONTRACT, case(2, 5000), 1)
    assert shelf(CONTRACT, case(1), 1) is small
