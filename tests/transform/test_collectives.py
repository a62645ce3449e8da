"""Helpers are written once, with what they call, and never twice into one file."""

from __future__ import annotations

import pytest

from fsr.analysis.operators import OPERATORS
from fsr.source.parse import parse_device_functions
from fsr.transform.collectives import defines, helper_text, missing_helpers


def test_a_block_fold_brings_the_warp_fold_it_calls() -> None:
    text = missing_helpers("", ["fsr_block_sum"])
    assert text.index("fsr_warp_sum(T value)\n{") < text.index("fsr_block_sum(T value)\n{")


def test_what_a_file_holds_is_not_added_again() -> None:
    text = missing_helpers("", ["fsr_block_max", "fsr_pack", "fsr_aligned"])
    assert missing_helpers(text, ["fsr_warp_max", "fsr_pack", "fsr_aligned", "fsr_block_max"]) == ""
    assert "fsr_warp_max" not in missing_helpers(text, ["fsr_block_min"])


def test_a_call_is_no_definition() -> None:
    assert not defines("float v = fsr_warp_sum(x);", "fsr_warp_sum")


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_has_both_folds(name: str) -> None:
    both = helper_text(f"fsr_warp_{name}") + helper_text(f"fsr_block_{name}")
    assert set(parse_device_functions(both)) == {f"fsr_warp_{name}", f"fsr_block_{name}"}


@pytest.mark.parametrize("name", ["greatest_at", "least_at"])
def test_a_fold_with_a_place_brings_the_warps_and_is_not_added_again(name: str) -> None:
    text = missing_helpers("", [f"fsr_block_{name}"])
    assert set(parse_device_functions(text)) == {f"fsr_warp_{name}", f"fsr_block_{name}"}
    assert missing_helpers(text, [f"fsr_block_{name}", f"fsr_warp_{name}"]) == ""


def test_unknown_helpers_are_refused() -> None:
    with pytest.raises(KeyError):
        helper_text("fsr_warp_mean")
