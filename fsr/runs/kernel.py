"""A user's kernel file as the search needs it: contract, device unit, baseline candidate, what it includes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsr.cache.digest import json_digest, text_digest
from fsr.contract.load import load_file
from fsr.contract.model import Argument, Contract
from fsr.errors import SourceError
from fsr.given import as_key, checked_define, checked_folder
from fsr.identity import to_json
from fsr.records import Candidate, Json
from fsr.runs.options import RefineOptions
from fsr.source.constants import as_constants
from fsr.source.cut import DeviceUnit
from fsr.source.file import KernelFile
from fsr.transform.in_step import in_step


@dataclass(frozen=True)
class Kernel:
    """A kernel file, the contract of one entry, and the baseline that the search starts from."""

    file: KernelFile
    contract: Contract
    unit: DeviceUnit
    baseline: Candidate
    given: tuple[str, ...] = ()  # folders and macros of the command line, as the cache tells them (fsr.given.as_key)
    in_step: tuple[str, ...] = ()  # places whose lanes were expected in step, where the baseline has them in order

    @property
    def folder(self) -> Path:
        """Where the file lies; references are imported from there."""
        return self.file.path.parent.absolute()

    @property
    def modules(self) -> Path | None:
        """The folder of the Python files that functions of its contract are imported from; None where it names none."""
        return self.folder if self._functions() else None

    def _functions(self) -> list[str]:
        reference, inputs = self.contract.reference, self.contract.inputs
        return [f for f in (reference, None if inputs is None else inputs.function) if f is not None]

    def includes(self) -> tuple[tuple[str, str], ...]:
        """(path relative to the folder, digest) of every local file the kernel was read with."""
        paths = set(self.file.included)
        if self.contract.origin.kind == "sidecar":
            paths.add(Path(self.contract.origin.path))
        paths |= {self.folder / function.partition(":")[0] for function in self._functions()}
        found = [(os.path.relpath(path, self.folder), text_digest(path.read_bytes())) for path in paths]
        return tuple(sorted(found))

    def as_meant(self) -> Kernel | None:
        """The kernel as its author meant it, who took the lanes of a warp to run in step: its baseline has barriers of
        the warp between. None where it does not look like that, or what changes could not be put into the file."""
        found = in_step(self.baseline.source, self.baseline.plan.launches)
        if found is None:
            return None
        try:
            self.file.splice(self.unit, found.text)
        except SourceError:
            return None
        places = tuple(dict.fromkeys(self.unit.where(line) for line in found.lines))
        return replace(self, baseline=replace(self.baseline, source=found.text), in_step=places)

    def contract_digest(self) -> str:
        """Digest of all that the contract promises; where it was read from does not count."""
        data = to_json(self.contract)
        assert isinstance(data, dict)
        data.pop("origin")
        data.pop("structures")  # what the file itself says, whose digest is beside this one
        data.pop("named")  # what they stand for is written out wherever they are
        data["args"] = [_told(a) for a in self.contract.args]
        if not data["include_dirs"]:
            data.pop("include_dirs")
        made = data.pop("inputs")
        if isinstance(made, dict):  # wherever the file lies
            data["inputs"] = made["function"]
        return json_digest(data)


def _told(argument: Argument) -> dict[str, Json]:
    """An argument without what it does not say and contracts once had no word for: they keep their digest."""
    found = to_json(argument)
    assert isinstance(found, dict)
    rules = found["constraints"]
    assert isinstance(rules, dict)
    newer = ("lows", "highs", "offsets", "values", "shares")
    found["constraints"] = {k: v for k, v in rules.items() if k not in newer or v}
    return {k: v for k, v in found.items() if k not in ("symbol", "member", "layout") or v}


def load_kernel(
    path: Path, entry: str | None = None, include_dirs: Sequence[str] = (), defines: Sequence[str] = ()
) -> Kernel:
    """Read a file and its contract, with the folders of includes and the macros that the caller compiles it with.
    Raises UsageError, SourceError and ContractError."""
    folders = [checked_folder(folder) for folder in include_dirs]
    macros = [checked_define(text) for text in defines]
    file, contract = load_file(path, entry, folders, macros)
    unit = file.cut(contract.entry, *(x.entry for x in contract.plan.launches if x.entry != contract.entry))
    text = as_constants(unit.text, [a.symbol for a in contract.symbols()])
    return Kernel(file, contract, unit, Candidate(text, contract.plan), as_key(path, folders, macros))


def kernel_of(options: RefineOptions) -> Kernel:
    """The kernel that a user's options name. Raises as :func:`load_kernel`."""
    return load_kernel(options.kernel, options.entry, options.include_dirs, options.defines)
