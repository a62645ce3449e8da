"""Infer the contract of a kernel that has none, where its code leaves no doubt; ask for a block where it does.

Understood are kernels that index by one global id a dimension, or one row a thread or block, with a size guard
(``if (i < n)``, ``if (row >= rows) return``), a launch in the file, or both. Nothing is guessed: an open point
becomes a gap in a block that the error shows, ready to paste.
"""

from __future__ import annotations

import re

from fsr.analysis.reach import walk_kernel
from fsr.contract.by_value import is_declared, refused
from fsr.contract.host import constants
from fsr.contract.infer.arguments import argument
from fsr.contract.infer.finding import Finding
from fsr.contract.infer.launch import block_extents, bound_indices, need_sizes, take_launch
from fsr.contract.infer.open import ambiguous
from fsr.contract.infer.sizes import sizes_of
from fsr.contract.model import Contract, Origin, Tolerance
from fsr.contract.symbols import clear_symbols
from fsr.errors import SourceError
from fsr.records import Plan
from fsr.source.entry import bare_name, function_name, template_arguments
from fsr.source.file import KernelFile
from fsr.source.form import KernelForm
from fsr.source.macros import expand
from fsr.source.signature import signature
from fsr.source.types import resolve_dtype


def infer(file: KernelFile, entry: str | None = None) -> Contract:
    """The contract that the code itself shows, origin 'inferred'.

    Raises SourceError when the kernel cannot be named, and ContractError when anything stays open: the message
    lists the open points and holds a block with the gaps marked ``"?"``.
    """
    name = _entry(file, entry)
    found = walked(file, name)
    for param in found.signature.params:
        if is_declared(param, file.text):
            why = found.signature.why_whole(param.name)
            raise refused(found.signature.kernel, param, f"{file.path}:{param.line}", why=why, certain=True)
    args = [argument(found, p) for p in found.signature.params]
    sizes = sizes_of(found, args)
    need_sizes(found, sizes)
    symbols, unclear = clear_symbols(file, name, {p.name for p in found.signature.params})
    found.open |= {f"args.{n}": "which values does host code put into this __constant__ variable?" for n in unclear}
    if found.open or found.launch is None or any(a is None for a in args):
        raise ambiguous(found, name, args, sizes)
    whole = [a for a in args if a is not None]
    length = max(found.summed) if len(found.summed) == 1 else None
    return Contract(
        entry=name,
        sizes=tuple(sizes),
        args=(*whole, *symbols),
        plan=Plan((found.launch,)),
        tolerance=Tolerance(sum_length=length),
        origin=Origin("inferred", str(file.path), int(found.signature.where.rsplit(":", 1)[1])),
    )


def walked(file: KernelFile, name: str) -> Finding:
    """What is seen of a kernel's accesses, and of how the file launches it. Raises SourceError."""
    parsed = _parsed(file, name)
    found = Finding(file, signature(file, name), parsed)
    take_launch(found, name)
    known = {**constants(file)} | {k: int(v) for k, v in found.signature.template if re.fullmatch(r"\d+", v)}
    known |= {k: known[v] for k, v in found.signature.template if v in known}
    found.walk = walk_kernel(parsed, known, block_extents(found.launch))
    bound_indices(found, name)
    return found


def _entry(file: KernelFile, entry: str | None) -> str:
    """The entry named, or the only kernel; a template's instance from the one launch that there is."""
    name = file.choose(entry)
    if entry is None or "<" not in entry:
        bare = function_name(name)
        launched = {h.entry for h in file.launches if function_name(h.entry) == bare and "<" in h.entry}
        known = set(constants(file))
        concrete = [e for e in launched if all(_concrete(a, known) for a in template_arguments(e))]
        if len(launched) == 1 and concrete:
            instance = concrete[0]
            return file.written_out(bare_name(name) + instance[instance.index("<") :])
    return name


def _concrete(argument: str, known: set[str]) -> bool:
    """Whether a template argument means the same outside the launching function: a number, a type, a constant."""
    return argument.isdigit() or argument in known or argument in ("true", "false") or bool(resolve_dtype(argument)[0])


def _parsed(file: KernelFile, name: str) -> KernelForm:
    from fsr.source.parse import parse_kernels  # loads the grammar

    bare = function_name(name)
    form = parse_kernels(expand(file.cut(name).text)).get(bare)
    if form is None:
        raise SourceError(
            f"the kernel {bare!r} cannot be parsed", expected="a __global__ function with a body",
            where=file.find(name).where, fix="write a contract block (see docs/contract.md)",
        )  # fmt: skip
    return form
