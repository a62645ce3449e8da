"""Where a winner cannot be written is said before the search."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsr.errors import StorageError, UsageError
from fsr.runs.outputs import OURS, require_writable, write_outputs


def kernel(folder: Path) -> Path:
    path = folder / "kernel.cu"
    path.write_text("__global__ void k(float *y) { y[0] = 1; }\n")
    return path


def test_a_file_beside_the_kernel_and_one_in_folders_to_be_made_will_do(tmp_path: Path) -> None:
    given = kernel(tmp_path)
    (tmp_path / "old.cu").write_text("what was there")
    (tmp_path / "link.cu").symlink_to("old.cu")
    for name in ("kernel.fsr.cu", "a/b/out.cu", "old.cu", "link.cu"):
        require_writable(tmp_path / name, given)
    assert sorted(os.listdir(tmp_path)) == ["kernel.cu", "link.cu", "old.cu"]  # noqa: PTH208
    assert (tmp_path / "old.cu").read_text() == "what was there"


def test_a_link_that_leads_to_itself_will_not(tmp_path: Path) -> None:
    (tmp_path / "out.cu").symlink_to("out.cu")
    with pytest.raises(StorageError, match=r"links|leads to itself"):
        require_writable(tmp_path / "out.cu", kernel(tmp_path))


def test_a_file_system_that_takes_no_files_will_not(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):  # its folders say that they may be written to
        require_writable(Path("/proc/winner.cu"), kernel(tmp_path))


def test_the_kernel_itself_will_not(tmp_path: Path) -> None:
    given = kernel(tmp_path)
    with pytest.raises(UsageError, match="the kernel itself"):
        require_writable(given, given)


def test_the_launcher_of_an_earlier_winner_does_not_stay_beside_another(tmp_path: Path) -> None:
    output, own = tmp_path / "k.fsr.cu", OURS.decode() + "k.\n"
    files = write_outputs({"k.fsr.cu": "v1", "k.fsr.cuh": own}, {}, output)
    assert Path(files["launcher"]).read_text() == own
    assert "launcher" not in write_outputs({"k.fsr.cu": "v2"}, {}, output)
    assert not output.with_suffix(".cuh").exists()
    output.with_suffix(".cuh").write_text("// somebody's own header\n")
    write_outputs({"k.fsr.cu": "v3"}, {}, output)
    assert output.with_suffix(".cuh").exists()
