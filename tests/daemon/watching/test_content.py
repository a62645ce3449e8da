"""What a kernel consists of where folders of includes and macros are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsrd.watching.folder import Folder
from fsrd.watching.index import Index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "inc").mkdir()
    (tmp_path / "src" / "k.cu").write_text("#include <k.cuh>\n__global__ void k() {}\n")
    (tmp_path / "inc" / "k.cuh").write_text("#define A 1\n")
    return tmp_path


def digest_of(folder: Folder) -> str:
    (digest,) = Index([folder]).scan().saved.values()
    return digest


def test_headers_of_a_folder_of_includes_are_part_of_a_kernel(root: Path) -> None:
    kernel, header = root / "src" / "k.cu", root / "inc" / "k.cuh"
    for folder in (Folder(root / "src", include_dirs=(str(root / "inc"),)), Folder(root / "src")):
        if not folder.include_dirs:  # the contract names it
            kernel.write_text('// /// fsr\n// include_dirs = ["../inc"]\n// ///\n' + kernel.read_text())
        index = Index([folder])
        index.scan()
        assert index.concerns(str(header))
        header.write_text(header.read_text() + "#define B 2\n")
        assert list(index.look([str(header)], changed=True).saved) == [str(kernel)]


def test_other_macros_are_another_content(root: Path) -> None:
    plain = digest_of(Folder(root / "src"))
    given = digest_of(Folder(root / "src", defines=("N=3",)))
    assert plain != given != digest_of(Folder(root / "src", defines=("N=4",)))
    assert given == digest_of(Folder(root / "src", defines=("N=3",)))
