"""The contract of a kernel file, wherever it comes from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fsr.contract.build import build, stated_defines, stated_folders
from fsr.contract.members import members_of, told, with_members
from fsr.contract.model import Contract
from fsr.contract.read import read_contract
from fsr.contract.validate import validate
from fsr.errors import ContractError
from fsr.given import latest
from fsr.source.file import KernelFile


def load_contract(kernel_file: KernelFile | Path | str, entry: str | None = None) -> Contract:
    """The validated contract of a file: its block, its sidecar, or what the code itself shows.

    ``entry`` names the kernel and overrides the contract's own entry. Raises SourceError for the file and
    ContractError for the contract; where inference is ambiguous the error holds a block to complete.
    """
    file = kernel_file if isinstance(kernel_file, KernelFile) else KernelFile.read(kernel_file)
    return loaded(file, entry)[1]


def load_file(
    path: Path, entry: str | None = None, include_dirs: Sequence[str] = (), defines: Sequence[str] = ()
) -> tuple[KernelFile, Contract]:
    """A file as its contract and the caller have it read, and the contract, which tells of both from then on.

    ``include_dirs``: from the working directory, searched before the contract's. ``defines``: they take the place of
    the contract's of the same name. Raises as :func:`load_contract`."""
    return loaded(KernelFile.read(path, [Path(folder) for folder in include_dirs], defines), entry)


def loaded(file: KernelFile, entry: str | None = None) -> tuple[KernelFile, Contract]:
    """The same of a file that was read with what the caller gives."""
    raw, folder = read_contract(file.path, file.text), file.path.parent
    names = tuple(os.path.relpath(path, folder) for path in file.include_dirs)
    defines = latest(file.defines)
    if raw is not None:
        names += tuple(name for name in stated_folders(raw, folder) if name not in names)
        defines = latest((*stated_defines(raw), *file.defines))
    file = replace(file, include_dirs=tuple(folder / name for name in names), defines=defines)
    if raw is None:
        from fsr.contract.infer.infer import infer  # needs the parser, which costs 40 ms

        contract, where = infer(file, entry), None
        contract = members_of(file, contract.entry).named(contract)
    else:
        raw, members = with_members(raw, file, entry)
        try:
            contract, where = members.named(build(raw, file, entry)), raw.where
        except ContractError as fault:
            raise told(fault, members.spoken()) from None
    flags = (*(f"-D{text}" for text in defines), *contract.plan.flags)
    contract = replace(contract, include_dirs=names, plan=replace(contract.plan, flags=flags))
    try:
        return file, validate(contract, where)
    except ContractError as fault:
        raise told(fault, {a.name: a.member for a in contract.args if a.member}) from None
