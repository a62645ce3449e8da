"""What is no number, where data says so (``y[i] = v <= 0 ? NAN : v``): one literal wherever it is met."""

from __future__ import annotations

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.printing import lines
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.computed.test_interleaved import buffer, kernel, lifted

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")


@pytest.mark.parametrize("type_", ["float", "double"])
def test_it_is_told_once_and_written_as_itself(runner, type_):
    subject = lifted(
        kernel(
            "  TYPE v = a[p] - 0.25f;\n  if (v <= 0) v = NAN;\n  o[p] = v;".replace("TYPE", type_),
            f"const {type_} *a, {type_} *o", a=buffer("in"), o=buffer("out"),
        )
    )  # fmt: skip
    (told,) = lines(subject.computation)
    assert told.count("nan") == 1, told
    moves = check(runner, subject, "pack-elements", ((1, 1), (5, 7), (16, 48)))
    assert "NAN" in FAMILY["pack-elements"].apply(subject, moves[0]).source
