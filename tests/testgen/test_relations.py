"""Sizes that are related: products and sums that are equal though no size is."""

from __future__ import annotations

import numpy as np

from fsr.contract.model import Argument, Contract, Size
from fsr.records import Launch, Plan, Role
from fsr.testgen.relations import related_sizes

PLAN = Plan((Launch("k", ("1", "1", "1"), ("32", "1", "1"), "0", ("x", "y")),))


def found(shapes: tuple[tuple[str, ...], tuple[str, ...]], seed: int = 0, most: int = 160) -> list[dict[str, int]]:
    names = dict.fromkeys(name for shape in shapes for name in shape)
    sizes = tuple(Size(name, 1, most, (most,)) for name in names)
    args = (Argument("x", "float32", Role.IN, shapes[0]), Argument("y", "float32", Role.OUT, shapes[1]))
    return related_sizes(Contract("k", sizes, args, PLAN), np.random.default_rng(seed))


def test_two_buffers_as_large_though_of_other_lines_in_every_seed() -> None:
    for seed in range(8):
        chosen = found((("c", "h", "w"), ("c", "oh", "ow")), seed)
        assert 1 <= len(chosen) <= 4
        apart = [s for s in chosen if s["h"] not in (s["oh"], s["ow"]) or s["h"] != s["oh"]]
        assert any(s["h"] * s["w"] == s["oh"] * s["ow"] for s in apart)
        assert any(s["h"] + s["w"] == s["oh"] + s["ow"] and s["h"] != s["oh"] for s in chosen)
        assert any(s["h"] * s["w"] == s["oh"] * s["ow"] and s["h"] not in (s["oh"], s["ow"]) for s in chosen)


def test_two_sizes_are_equal_once_and_one_has_no_relations() -> None:
    (one,) = found((("m", "n"), ("m",)))
    assert one["m"] == one["n"]
    assert found((("n",), ("n",))) == []


def test_legal_sizes_where_there_are_few() -> None:
    assert all(max(s.values()) <= 3 for s in found((("m", "n"), ("k",)), most=3))
