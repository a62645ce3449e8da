"""Integers as C has them: widths, signs and conversions."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.analysis.word_values import Kind, binary, converted, function, kind_of, literal, unary, word
from fsr.source.form import Literal

ALL = np.ones(3, bool)
INT, UNSIGNED, LONG, WIDE = Kind(), Kind(32, False), Kind(64), Kind(64, False)


@pytest.mark.parametrize(
    ("a", "op", "b", "value", "kind"),
    [
        (word(0, UNSIGNED), "-", word(1), 2**32 - 1, UNSIGNED),
        (word(-1), "<", word(1, UNSIGNED), 0, INT),
        (word(-1), "<", word(1, LONG), 1, INT),
        (word(-7), "/", word(2), -3, INT),
        (word(-7), "%", word(2), -1, INT),
        (word(-1, WIDE), "/", word(2, WIDE), 2**63 - 1, WIDE),
        (word(-1, WIDE), ">>", word(60), 15, WIDE),
        (word(-8), ">>", word(1), -4, INT),
        (word(1, UNSIGNED), "<<", word(31), 2**31, UNSIGNED),
        (word(200, Kind(8, False)), "+", word(100, Kind(8, False)), 300, INT),
        (word(2**31, UNSIGNED), "*", word(2, UNSIGNED), 0, UNSIGNED),
    ],
)  # fmt: skip
def test_operators_follow_their_types(a, op, b, value, kind) -> None:
    found = binary(op, a, b, ALL)
    assert found is not None
    assert (int(found.values), found.kind) == (value, kind)


def test_what_c_leaves_open_is_not_told() -> None:
    assert binary("/", word(1), word([0, 1, 2]), ALL) is None
    assert binary("<<", word(1), word(32), ALL) is None
    found = binary("/", word(4), word([0, 1, 2]), np.array([False, True, True]))
    assert found is not None
    assert found.values.tolist()[1:] == [4, 2]


def test_types_and_literals() -> None:
    assert [kind_of(t) for t in ("size_t", "unsigned", "char", "bool", "float")] == [
        WIDE, UNSIGNED, Kind(8), Kind(1, False), None,
    ]  # fmt: skip
    told = {"1u": UNSIGNED, "1ULL": WIDE, "0xffffffff": UNSIGNED, "3000000000": LONG, "7": INT}
    for text, kind in told.items():
        found = literal(Literal(text))
        assert found is not None
        assert found.kind == kind
    assert literal(Literal("1.0f")) is None
    assert int(converted(word(300), Kind(8, False)).values) == 44


def test_functions_of_integers() -> None:
    made = [unary("~", word(0)), function("__brev", [word(1)]), function("min", [word(-1), word(1, UNSIGNED)])]
    assert [int(w.values) for w in made if w is not None] == [-1, 2**31, 1]
    assert function("hash", [word(1)]) is None
