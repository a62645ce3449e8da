"""The contract of a kernel file, wherever it comes from."""

from __future__ import annotations

from pathlib import Path

from fsr.contract.build import build
from fsr.contract.model import Contract
from fsr.contract.read import read_contract
from fsr.contract.validate import validate
from fsr.source.file import KernelFile


def load_contract(kernel_file: KernelFile | Path | str, entry: str | None = None) -> Contract:
    """The validated contract of a file: its block, its sidecar, or what the code itself shows.

    ``entry`` names the kernel and overrides the contract's own entry. Raises SourceError for the file and
    ContractError for the contract; where inference is ambiguous the error holds a block to complete.
    """
    file = kernel_file if isinstance(kernel_file, KernelFile) else KernelFile.read(kernel_file)
    raw = read_contract(file.path, file.text)
    if raw is None:
        from fsr.contract.infer import infer  # needs the parser, which costs 40 ms

        return validate(infer(file, entry))
    return validate(build(raw, file, entry), raw.where)
