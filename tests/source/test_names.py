"""Names in generated text."""

from __future__ import annotations

from fsr.source.names import settle


def test_a_name_is_none_of_a_function_that_is_called():
    assert settle("int $max = max(a, $sum);", frozenset()) == "int max_ = max(a, sum);"
    assert settle("int $max = $max2(a);", frozenset({"max"})) == "int max_ = max2(a);"
