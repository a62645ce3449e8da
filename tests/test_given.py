"""What a compiler is given beside a file, as the cache tells it and back."""

from __future__ import annotations

import os
from pathlib import Path

from fsr.given import as_key, of_key


def test_folders_and_macros_come_back_from_a_key_wherever_the_tree_lies_then(tmp_path: Path) -> None:
    here, there = tmp_path / "here" / "kernel.cu", tmp_path / "there" / "kernel.cu"
    key = as_key(here, [str(here.parent / "include"), str(tmp_path / "here")], ["WIDTH=4", "FAST"])
    folders, defines = of_key(there, key)
    assert [os.path.normpath(folder) for folder in folders] == [str(there.parent / "include"), str(there.parent)]
    assert defines == ["FAST", "WIDTH=4"]
    assert as_key(there, folders, defines) == key
