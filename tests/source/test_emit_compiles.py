"""What is emitted is CUDA: NVRTC takes every example's kernel back, at the same entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.contract.load import load_contract
from fsr.records import Candidate, Image
from fsr.source.file import KernelFile
from fsr.source.parse import parse_kernels
from fsr.source.rewrite import replace_kernel

EXAMPLES = [p for p in sorted((Path(__file__).parents[2] / "examples").glob("*.cu")) if "/// fsr" in p.read_text()]


@pytest.fixture(scope="module")
def nvrtc():
    from fsr.backends.cuda.nvrtc import NvrtcToolchain, find_nvrtc

    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")

    return NvrtcToolchain("sm_90")


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_emitted_kernels_compile(path, nvrtc):
    file = KernelFile.from_text(path.read_text())
    contract = load_contract(file)
    text = file.cut(contract.entry).text
    (form,) = parse_kernels(text).values()
    built = nvrtc.compile(Candidate(replace_kernel(text, form, form), contract.plan))
    assert isinstance(built, Image), built
    assert contract.entry in built.symbols
