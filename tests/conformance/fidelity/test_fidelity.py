"""The host device against recorded GPU results, program by program; where none is recorded, against NumPy."""

import functools

import numpy as np
import pytest
from fidelity_corpus import (
    RECORDED,
    Program,
    difference,
    expected,
    load_programs,
    load_recording,
    recorded_output,
    run_unit,
    ulp_distance,
    units,
)  # fmt: skip

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice

PROGRAMS = load_programs()
RECORDINGS = sorted(RECORDED.glob("*.json"))


@pytest.fixture(scope="module")
def on_host():
    """Output of a program on the host device; a unit is compiled and run when its first program is asked for."""
    toolchain, device = HostToolchain(), HostDevice()
    of_unit = {program.name: unit for unit in units(PROGRAMS) for program in unit}
    results = functools.cache(lambda names: run_unit(toolchain, device, of_unit[names[0]]))
    yield lambda program: results(tuple(p.name for p in of_unit[program.name]))[program.name]
    device.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_same_as_the_gpu(program: Program, on_host) -> None:
    """Within the program's ulp of every recording and of its NumPy expression."""
    got = on_host(program)
    compared = 0
    for path in RECORDINGS:
        want = recorded_output(program, load_recording(path))
        if want is not None:
            compared += 1
            assert (told := difference(program, got, want)) is None, f"{path.stem}: {told}"
    want = expected(program)
    if want is not None:
        compared += 1
        assert (told := difference(program, got, want)) is None, f"numpy: {told}"
    if not compared:
        assert np.any(got != 0), f"{program.name} gave nothing but zeros"
        pytest.skip(f"{program.name} has no GPU recording: run tests/conformance/fidelity/record.py on a GPU machine")


def test_the_corpus_is_wide() -> None:
    """At least 150 programs, each with a check that can fail."""
    assert len(PROGRAMS) >= 150
    assert sum(program.expression is not None for program in PROGRAMS) >= 150


def test_ulp_distance_counts_numbers_between() -> None:
    one = np.array([1.0, 0.0, -1.0, np.nan, 1.0], np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), -0.0, 1.0, np.nan, np.nan], np.float32)
    apart = ulp_distance(one, other)
    assert apart[0] == 1
    assert apart[1] == 0.5
    assert apart[2] > 2**30
    assert apart[3] == 0
    assert np.isinf(apart[4])


def test_a_wrong_result_is_told_with_its_place() -> None:
    program = next(p for p in PROGRAMS if p.name == "float_add")
    want = expected(program)
    assert want is not None
    got = want.copy()
    got[17] += 1
    assert difference(program, want, want) is None
    assert "[17]" in (difference(program, got, want) or "")
