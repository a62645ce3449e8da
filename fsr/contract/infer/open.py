"""What inference leaves open, as an error that holds a block to complete."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.contract.draft import GAP, Draft, inline, quoted
from fsr.contract.infer.finding import Finding
from fsr.contract.members import as_key, members_of
from fsr.contract.model import Argument, Size
from fsr.contract.show import argument_row, launch_rows, size_row
from fsr.errors import ContractError
from fsr.source.cut import found_with_i
from fsr.source.signature import Parameter


def ambiguous(found: Finding, name: str, args: Sequence[Argument | None], sizes: Sequence[Size]) -> ContractError:
    """The error that lists the open points of the kernel ``name`` and shows what is known of its contract, a gap for
    each of them."""
    draft, spoken = Draft(entry=name), members_of(found.file, name).spoken()
    draft.sizes = [(s.name, size_row(s)) for s in sizes] or [("n", "{min = 1, max = 1048576, timed = 1048576}")]
    for param, argument in zip(found.signature.params, args, strict=True):
        note, key = found.open.get(f"args.{param.name}"), as_key(spoken.get(param.name, param.name))
        if note:
            draft.notes[f"args.{key}"] = note
        draft.args.append((key, argument_row(argument) if argument is not None else _gap(param)))
    for key in [k for k in found.open if k.startswith("args.")]:
        if found.signature.param(key.removeprefix("args.")) is None:
            draft.notes[key] = found.open[key]
            draft.args.append((key.removeprefix("args."), inline([("low", GAP), ("high", GAP)])))
    if found.launch is not None and "launch" not in found.open:
        draft.launches = [launch_rows(found.launch, is_plan=False)]
    else:
        draft.launches = [[("grid", GAP), ("block", GAP)]]
        draft.notes["launch.grid"] = found.open.get("launch", "")
    missing = found_with_i(found.file.cut(name))
    opened = {key.removeprefix("args."): why for key, why in found.open.items()}
    points = "; ".join(f"{spoken.get(key, key)}: {why}" for key, why in opened.items())
    return ContractError(
        f"there is no contract, and the code leaves open: {points}",
        expected='this block on top of the file, with every "?" filled in (docs/contract.md):\n\n' + draft.block(),
        where=found.signature.where,
        fix=(missing and f"{missing}, or ") + 'paste the block, fill in every "?", and run fsr contract again',
    )


def _gap(param: Parameter) -> str:
    dtype = [] if param.dtype else [("dtype", GAP)]
    if not param.pointer:
        return inline([*dtype, ("value", GAP)])
    role = quoted("in") if param.const else GAP
    return inline([*dtype, ("role", role), ("shape", f"[{GAP}]")])
