"""Which structural actions the examples offer, and that every first move of each is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.transform.registry import STRUCTURAL, all_actions

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "gemm": {"block-shape", "share-loop"},
    "transpose": {"block-shape", "coarsen-rows"},
    "stencil": {"march-stencil", "tile-stencil", "block-shape", "coarsen-rows"},
    "scale_bias": {"block-shape", "coarsen-rows"},
    "saxpy": set(),
    "softmax": {"row-per-warp", "row-per-block", "share-loop"},
    "layer_norm": {"row-per-warp", "row-per-block", "share-loop"},
    "reduction": {"reduce-atomics", "shared-atomics"},
    "histogram": {"private-bins", "shared-atomics"},
    "realworld": {"row-per-warp", "row-per-block"},
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_examples_offer_what_fits_them(name, subject_from):
    subject = subject_from((EXAMPLES / f"{name}.cu").read_text())
    offered = {a.name for a in STRUCTURAL if list(a.moves(subject))}
    assert offered == EXPECTED[name]


def test_they_are_in_the_registry_and_named_apart():
    names = [a.name for a in all_actions()]
    assert len(set(names)) == len(names)
    assert {a.name for a in STRUCTURAL} <= set(names)
    assert all(a.aims_at for a in STRUCTURAL)


@pytest.mark.parametrize("name", ["gemm", "transpose", "stencil", "scale_bias"])
def test_moves_are_the_same_each_time_and_apply(name, subject_from):
    subject = subject_from((EXAMPLES / f"{name}.cu").read_text())
    for action in STRUCTURAL:
        moves = list(action.moves(subject))
        assert moves == list(action.moves(subject))
        assert len({m.name for m in moves}) == len(moves)
        for move in moves:
            changed = action.apply(subject, move)
            assert changed.actions == (move.name,)
            assert changed != subject.candidate
