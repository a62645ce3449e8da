"""The queue folder: a job is there whole or not at all, until its reader removes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsr.builds.queue import put, queue_of, read, waiting


def test_jobs_come_oldest_first_and_once(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    assert list(waiting(queue)) == []
    kernels = [tmp_path / f"{name}.cu" for name in "ba"]
    for number, kernel in enumerate(kernels):
        kernel.write_text(f"// {kernel.name}")
        job = put(queue, kernel)
        os.utime(queue / f"{job.source}.job", (number + 1, number + 1))
    put(queue, kernels[0])
    places = list(waiting(queue))
    jobs = [read(place) for place in places]
    assert [job and job.kernel for job in jobs] == kernels
    for place in places:
        place.unlink()
    assert [read(place) for place in places] == [None, None]
    assert list(queue.iterdir()) == []
    kernels[0].write_text("// saved again")
    assert [job and job.current for job in jobs] == [False, True]
    kernels[1].unlink()
    assert jobs[1] is not None
    assert not jobs[1].current


def test_a_job_that_another_takes_meanwhile_hides_no_other(tmp_path: Path) -> None:
    kernel = tmp_path / "k.cu"
    kernel.write_text("// k")
    put(tmp_path / "q", kernel)
    (tmp_path / "q" / "gone.job").symlink_to(tmp_path / "nowhere")  # listed, and not there when it is asked for
    assert [job and job.kernel for job in map(read, waiting(tmp_path / "q"))] == [kernel]


def test_each_set_of_folders_and_macros_is_a_job_of_its_own(tmp_path: Path) -> None:
    queue, kernel = queue_of(tmp_path), tmp_path / "k.cu"
    kernel.write_text("// k")
    for defines in ((), ("N=4",), ("N=8",), ("N=8",)):
        put(queue, kernel, [str(tmp_path / "a folder")] if defines else [], defines)
    found = {job.given for job in map(read, waiting(queue)) if job is not None and job.current}
    assert found == {(), *((f"-I{tmp_path}/a folder", f"-DN={n}") for n in (4, 8))}


@pytest.mark.parametrize("text", ["", "x", "fsr-queue 2\nkernel /a\nsource b\n", "fsr-queue 1\nkernel a\nsource b\n"])
def test_what_is_no_job_is_not_given(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.job").write_text(text)
    assert read(tmp_path / "a.job") is None


def test_a_path_that_would_break_the_format_is_refused(tmp_path: Path) -> None:
    kernel = tmp_path / "a\nb.cu"
    kernel.write_text("")
    with pytest.raises(ValueError, match="line break"):
        put(tmp_path / "q", kernel)
