"""nvdisasm's text, from a program in its place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fsr.backends.cuda import disassembly
from fsr.backends.cuda.disassembly import disassembled
from fsr.records import Image

IMAGE = Image("cubin", "sm_90", b"\x7fELF", {"k": "k"}, {})


@pytest.mark.parametrize(
    ("code", "told"), [("print(open(args[-1], 'rb').read()[1:4])", "b'ELF'\n"), ("sys.exit(1)", None)]
)
def test_the_image_is_given_to_it_and_a_failure_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, told: str | None
) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert disassembled(IMAGE) == told


def test_without_it_or_for_another_kind_of_image_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disassembled(Image("host", "x86_64", b"", {}, {})) is None
    monkeypatch.setattr(disassembly, "find_disassembler", lambda: None)
    assert disassembled(IMAGE) is None
