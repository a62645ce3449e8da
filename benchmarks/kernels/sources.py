"""Kernels to try actions on: files with their contracts, and the kernels that the project's tests are made of.

Tests build most of their kernels from pieces of text, so they are read where they arrive: this module is also a pytest
plugin (``-p benchmarks.kernels.sources``) that writes every kernel whose contract a test loads to the folder that
FSR_KERNELS_OUT names, and ends each test where it would compile or lift.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from fsr.computation.computation import Computation  # noqa: E402  # the checkout, installed or not
from fsr.contract.load import load_contract  # noqa: E402
from fsr.contract.model import Contract  # noqa: E402
from fsr.errors import FsrError  # noqa: E402
from fsr.records import Candidate  # noqa: E402
from fsr.runs.kernel import load_kernel  # noqa: E402
from fsr.source.parse import parse_kernels  # noqa: E402
from fsr.testgen.candidate_file import read_candidate  # noqa: E402
from fsr.transform.protocol import Move  # noqa: E402

KERNEL_SUFFIXES = (".cu", ".cuh", ".h")
TESTS_WITH_KERNELS = ("tests/transform", "tests/search", "tests/features", "tests/prediction")
_EXAMPLE_OF = {"gemm_tiled": "gemm", "histogram_shared": "histogram", "layer_norm_row_per_block": "layer_norm",
               "reduction_two_passes": "reduction", "saxpy_vector_loads": "saxpy", "softmax_row_per_warp": "softmax",
               "stencil_coarsened": "stencil", "transpose_tiled": "transpose"}  # fmt: skip
_OUT = "FSR_KERNELS_OUT"
_OURS = ("tests/transform/test_every_action.py",)  # what collects, itself


@dataclass(frozen=True)
class Subject:
    """A kernel with its contract, as the search starts from it. ``name`` is unique in a collection. ``computation``:
    what it computes, where somebody found out."""

    name: str
    candidate: Candidate
    contract: Contract
    folder: str = ""
    computation: Computation | None = None


def of_repository() -> list[Subject]:
    """The examples, and the corpus's honest candidates under their examples' contracts."""
    found = [_read(path, f"examples/{path.stem}") for path in sorted((ROOT / "examples").glob("*.cu"))]
    for path in sorted((ROOT / "tests" / "cheats" / "honest").glob("*.cu")):
        contract = load_contract(ROOT / "examples" / f"{_EXAMPLE_OF[path.stem]}.cu")
        found.append(Subject(f"honest/{path.stem}", read_candidate(path, contract), contract))
    return found


def of_tests(out: Path, paths: Sequence[str] = TESTS_WITH_KERNELS) -> list[Subject]:
    """The kernels that tests build and that have a contract of their own; runs the tests up to where they compile."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.kernels.sources", "-p", "no:cacheprovider"]
    command += ["--tb=no"]  # tests that miss what they wait for fail, hundreds of them
    command += [f"--ignore={path}" for path in _OURS]
    ours = {ROOT / path for path in _OURS}  # a file that is named is not ignored, and would collect itself for ever
    paths = [path for path in paths if (ROOT / path).resolve() not in ours]
    environment = os.environ | {_OUT: str(out), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    out.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run([*command, *paths], cwd=ROOT, env=environment, capture_output=True, text=True)
    if ran.returncode > 1:  # 1: a test failed, whose kernel is as good as another's
        raise RuntimeError(f"the tests' kernels could not be collected:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return of_folder(out, "tests")


def of_folder(folder: Path, label: str | None = None) -> list[Subject]:
    """Every file of a folder and its folders that has a contract; files that fsr refuses are told on stderr."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in KERNEL_SUFFIXES):
        if "/// fsr" in path.read_text(errors="replace") or path.with_suffix(".fsr.toml").exists():
            try:
                found.append(_read(path, f"{label or folder.name}/{path.relative_to(folder).with_suffix('')}"))
            except FsrError as error:
                print(f"left out: {path}: {error.what}", file=sys.stderr)
    return found


def _read(path: Path, name: str) -> Subject:
    kernel = load_kernel(path)
    parse_kernels(kernel.baseline.source)
    return Subject(name, kernel.baseline, kernel.contract, str(kernel.folder))


def unique(subjects: Sequence[Subject]) -> Iterator[Subject]:
    """Each kernel under each contract once."""
    seen = set()
    for subject in subjects:
        key = (subject.candidate, subject.contract.sizes, subject.contract.args, subject.contract.tolerance,
               subject.contract.aliasing)  # fmt: skip
        if key not in seen:
            seen.add(key)
            yield subject


# ---------------------------------------------------------------- the plugin


def _record() -> None:
    """Put the recorder in place, before test modules import what it stands in for."""
    import pytest

    import fsr.contract.load as loading
    import fsr.lifting.lift as lifting
    from fsr.backends.cuda.nvrtc import NvrtcToolchain
    from fsr.backends.host.compiler import HostToolchain
    from fsr.transform.computed.action import FromComputation
    from fsr.transform.recurrence.action import StepLaunches

    out, original = Path(os.environ[_OUT]), loading.load_contract

    def recording(file: Any, entry: str | None = None) -> Contract:
        contract = original(file, entry)
        text = getattr(file, "text", None)
        if isinstance(text, str) and "/// fsr" in text:
            name = hashlib.sha256(text.encode()).hexdigest()[:12]
            (out / f"{name}.cu").write_text(text)
        return contract

    def stopped(*_given: object, **_named: object) -> None:
        pytest.skip("its kernel is recorded")

    def nothing(*_given: object) -> Iterator[Move]:
        return iter(())

    loading.load_contract = recording
    HostToolchain.compile = stopped  # type: ignore[method-assign, assignment]
    NvrtcToolchain.compile = stopped  # type: ignore[method-assign, assignment]
    lifting.lift = stopped  # type: ignore[assignment]
    # What takes longest offers nothing: a test that must be offered something ends there, and a loop over kernels that
    # must not goes on to the last.
    FromComputation.moves = StepLaunches.moves = nothing  # type: ignore[method-assign, assignment]


if _OUT in os.environ:
    _record()
