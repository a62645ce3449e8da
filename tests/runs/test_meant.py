"""An original that was written for lanes in step is qualified as it was meant, where it fails as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.errors import BaselineError, UnorderedError
from fsr.evaluation.qualify import check_baseline
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.runs.kernel import Kernel, load_kernel
from fsr.runs.meant import as_it_stands_or_was_meant, notes_on
from fsr.runs.options import RefineOptions
from fsr.runs.resuming import RunStart
from fsr.runs.run import Run
from fsr.settings import Settings
from fsr.source.file import KernelFile

CONTRACT = """// /// fsr
// reference = "ref.py:f"
// [sizes]
// n = {min = 1, max = 24, timed = 24}
// [args]
// x = {role = "in", dtype = "int32", shape = ["n", 128], low = -99, high = 99}
// y = {role = "out", dtype = "int32", shape = ["n", 128]}
// [launch]
// grid = "n"
// block = 128
// ///
"""
KERNEL = """__global__ void k(const int *x, int *y)
{
    __shared__ int s[128], w[128];
    int t = threadIdx.x, lane = t & 31;
    s[t] = x[blockIdx.x * 128 + t];
    w[t] = t;
    __syncthreads();
    STEPS
    y[blockIdx.x * 128 + t] = s[t] + 1000 * w[t];
}
"""
REFERENCE = """import numpy as np

def f(x):
    s = x.reshape(-1, 4, 32).astype(np.int64)
    w = np.broadcast_to(np.arange(128).reshape(4, 32), s.shape).copy()
    lane = np.arange(32)
    for d in (16, 8, 4, 2, 1):
        STEP
    return (s + 1000 * w).reshape(-1, 128)
"""
FORMS = {
    "sum": ("{ volatile int *v = s; v[t] += v[t ^ D]; }", "s = s + s[..., lane ^ d]"),
    "loose": ("s[t] = s[t] - s[t - lane + (lane * 3 + D) % 32];", "s = s - s[..., (lane * 3 + d) % 32]"),
    "scan": ("if (lane >= D) s[t] = s[t - D] + s[t];", "s = np.where(lane >= d, np.roll(s, d, -1) + s, s)"),
    "greatest": (
        "if (s[t] < s[t ^ D] && lane < D) { s[t] = s[t ^ D]; w[t] = w[t ^ D]; }",
        "c = (s < s[..., lane ^ d]) & (lane < d)\n"
        "        s, w = np.where(c, s[..., lane ^ d], s), np.where(c, w[..., lane ^ d], w)",
    ),
    "nested": (
        "if (lane >= D) { if (w[t] % 2 == 0) s[t] = s[t - D] + s[t]; w[t] = w[t - D] | w[t]; }",
        "c = lane >= d\n"
        "        s = np.where(c & (w % 2 == 0), np.roll(s, d, -1) + s, s)\n"
        "        w = np.where(c, np.roll(w, d, -1) | w, w)",
    ),
}


def kernel_of_form(folder: Path, steps: str, step: str) -> Kernel:
    lines = "\n    ".join(steps.replace("D", str(d)) for d in (16, 8, 4, 2, 1))
    (folder / "k.cu").write_text(CONTRACT + KERNEL.replace("STEPS", lines))
    (folder / "ref.py").write_text(REFERENCE.replace("STEP", step))
    return load_kernel(folder / "k.cu")


def qualified(kernel: Kernel, spec: SessionSpec) -> list[str]:
    session = Session(spec)
    try:
        return check_baseline(session, session.held_out_cases()[:4])
    finally:
        session.close()


@pytest.mark.parametrize("form", FORMS)
def test_it_computes_what_lanes_in_step_compute(form: str, tmp_path: Path) -> None:
    kernel = kernel_of_form(tmp_path, *FORMS[form])
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))
    with pytest.raises(UnorderedError):
        qualified(kernel, spec)
    meant, its, _ = as_it_stands_or_was_meant(kernel, spec, qualified)
    assert its.baseline == meant.baseline != kernel.baseline
    assert [note for note in notes_on(meant) if f"{tmp_path / 'k.cu'}:19-23" in note]
    assert notes_on(kernel) == ()


@pytest.mark.parametrize("steps", ["s[t] += s[(t + D) % 128];", "if (t < 64) s[t] += s[t + 64]; s[t] += s[t ^ D];"])
def test_a_race_between_warps_stays_one(steps: str, tmp_path: Path) -> None:
    kernel = kernel_of_form(tmp_path, steps, "pass")
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))
    assert kernel.as_meant() is not None
    with pytest.raises(UnorderedError) as told:
        as_it_stands_or_was_meant(kernel, spec, qualified)
    with pytest.raises(UnorderedError) as first:
        qualified(kernel, spec)
    assert str(told.value) == str(first.value)


def test_one_that_passes_or_fails_otherwise_is_left_alone(tmp_path: Path) -> None:
    kernel = kernel_of_form(tmp_path, *FORMS["sum"])
    spec = SessionSpec(kernel.contract, kernel.baseline, "host", "sm_90", 0, str(tmp_path))
    assert as_it_stands_or_was_meant(kernel, spec, lambda *_: "right") == (kernel, spec, "right")

    def fails(*_: object) -> str:
        raise BaselineError("it does not compile")

    with pytest.raises(BaselineError, match="does not compile"):
        as_it_stands_or_was_meant(kernel, spec, fails)


def test_a_function_in_a_header_is_meant_too(tmp_path: Path) -> None:
    (tmp_path / "last.cuh").write_text(
        "#pragma once\n__device__ void last(volatile int *v, int t)\n{\n    v[t] += v[t ^ 1];\n}\n"
    )
    kernel = kernel_of_form(tmp_path, "last(s, t);", "pass")
    path = tmp_path / "k.cu"
    path.write_text('#include "last.cuh"\n' + path.read_text())
    kernel = load_kernel(path)
    meant = kernel.as_meant()
    assert meant is not None
    assert meant.in_step == (f"{tmp_path / 'last.cuh'}:4",)
    text = kernel.file.splice(kernel.unit, meant.baseline.source)
    assert '#include "last.cuh"' not in text
    assert KernelFile.from_text(text, path).cut("k").text.count("__syncwarp();") == 2


def test_a_run_says_so_and_takes_it_so_again_when_it_goes_on(tmp_path: Path) -> None:
    kernel = kernel_of_form(tmp_path, *FORMS["sum"])
    options = RefineOptions(kernel.file.path, "host", budget_s=60.0, evaluations=1, workers=1, use_cache=False)
    run = Run(options, settings=Settings(str(tmp_path / "home"), str(tmp_path / "home" / "cache.db"))).start()
    result = run.wait(300)
    assert result is not None
    assert [note for note in result.notes if "__syncwarp() put in at" in note]
    start = RunStart.read(run.folder)
    assert start.in_step
    assert start.kernel().baseline == kernel.as_meant().baseline  # type: ignore[union-attr]
