"""Conditionals in functions, as a compiler decides them, byte for byte in place."""

from __future__ import annotations

import pytest

from fsr.source.inner_branches import with_branches_decided


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#define N 4\nvoid f() {\n#if N > 2\na;\n#else\nb;\n#endif\n}\n", {"a"}),
        ("void f() {\n#ifdef N\na;\n#elif 1\nb;\n#endif\n}\n", {"b"}),
        ("#define N\n#undef N\nvoid f() {\n#ifdef N\na;\n#else\nb;\n#endif\n}\n", {"a", "b"}),
        ("void f() {\n#if __CUDA_ARCH__ > 700\na;\n#else\nb;\n#endif\n}\n", {"a", "b"}),
        (
            "#ifdef OTHER\n#define N 1\n#else\n#define N 2\n#endif\nvoid f() {\n#if N == 2\na;\n#else\nb;\n#endif\n}\n",
            {"a"},
        ),
        ("void f() {\n#if 0 // ä\nä; b;\n#endif\na;\n}\n", {"a"}),
    ],
)
def test_what_is_not_compiled_is_blank(text: str, kept: set[str]) -> None:
    found = with_branches_decided(text)
    assert {name for name in "ab" if f"{name};" in found} == kept
    assert len(found.encode()) == len(text.encode())
    assert found.count("\n") == text.count("\n")
