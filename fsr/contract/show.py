"""A contract as the text that would state it: read back, it gives an equal contract."""

from __future__ import annotations

import re

from fsr.contract.draft import Draft, dimensions, inline, listed, number_or_text, quoted
from fsr.contract.members import argument_key, as_key
from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.contract.read import block_range
from fsr.records import Launch, Role, ScalarArgument
from fsr.source.launched_structures import TakenStructures, structures_of


def contract_toml(contract: Contract) -> str:
    """The contract as TOML, for a sidecar."""
    return _draft(contract).toml()


def contract_block(contract: Contract) -> str:
    """The contract as the comment block for the top of the kernel file, newline at the end."""
    return _draft(contract).block()


def with_block(text: str, contract: Contract) -> str:
    """A kernel file's text with the contract as its block: in place of the one it has, else on top.

    Keeps the file's newlines. A leading comment (a licence, a description) stays first.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    block = contract_block(contract).replace("\n", newline)
    found = block_range(text)
    if found is not None:
        lines = text.split("\n")
        before = "".join(line + "\n" for line in lines[: found[0]])
        after = "\n".join(lines[found[1] :])
        return before + block + after
    head = re.match(r"\ufeff?(?:[ \t]*(?://[^\n]*|/\*.*?\*/)[ \t]*\r?\n)*", text, re.DOTALL)
    at = head.end() if head else 0
    return (
        text[:at]
        + (f"//{newline}" if at and text[:at].rstrip().split("\n")[-1].startswith("//") else "")
        + block
        + (text[at:] if text[at:].startswith(("\n", "\r\n")) else newline + text[at:])
    )


def _draft(contract: Contract) -> Draft:
    draft = Draft(entry=contract.entry)
    if contract.reference:
        draft.top.append(("reference", quoted(contract.reference)))
    if contract.inputs is not None:
        draft.top.append(("inputs", quoted(contract.inputs.function)))
    if contract.aliasing:
        groups = ", ".join("[" + ", ".join(quoted(n) for n in group) + "]" for group in contract.aliasing)
        draft.top.append(("aliasing", f"[{groups}]"))
    flags = [flag for flag in contract.plan.flags if not flag.startswith("-D")]
    for key, texts in (("include_dirs", contract.include_dirs), ("defines", contract.defines), ("flags", flags)):
        if texts:
            draft.top.append((key, "[" + ", ".join(quoted(text) for text in texts) + "]"))
    draft.sizes = [(s.name, size_row(s)) for s in contract.sizes]
    draft.args = [(argument_key(a), argument_row(a)) for a in contract.args]
    plain = tuple(a.name for a in contract.passed())
    launches = contract.plan.launches
    draft.is_plan = len(launches) != 1 or launches[0].args != plain or launches[0].entry != contract.entry
    taken = structures_of(contract)
    draft.launches = [launch_rows(one, draft.is_plan, taken) for one in launches]
    for scratch in contract.plan.scratch:
        rows = [("dtype", quoted(scratch.dtype)), ("count", number_or_text(scratch.count))]
        draft.scratch.append((scratch.name, inline([*rows, ("zeroed", "true")] if scratch.zeroed else rows)))
    tolerance = contract.tolerance
    for key in ("rtol", "atol"):
        value = getattr(tolerance, key)
        if value is not None:
            draft.tolerance.append((key, repr(value)))
    if tolerance.sum_length is not None:
        draft.tolerance.append(("sum_length", number_or_text(tolerance.sum_length)))
    if tolerance.exact:
        draft.tolerance.append(("exact", "true"))
    return draft


def size_row(size: Size) -> str:
    """One line of [sizes]."""
    timed = str(size.timed[0]) if len(size.timed) == 1 else str(list(size.timed))
    return inline([("min", str(size.minimum)), ("max", str(size.maximum)), ("timed", timed)])


def argument_row(argument: Argument) -> str:
    """One line of [args]."""
    if argument.role is Role.NULL:
        return inline([("null", "true")])
    rows = [("symbol", quoted(argument.symbol))] if argument.symbol else []
    rows += [("dtype", quoted(argument.dtype))] if argument.layout is None else []
    if argument.role is not Role.SCALAR:
        shape = argument.shape if argument.layout is None else argument.shape[:-1]
        rows += [("role", quoted(argument.role.value)), ("shape", listed(shape))]
    if argument.value is not None:
        rows.append(("value", number_or_text(argument.value)))
    if argument.alignment:
        rows.append(("alignment", str(argument.alignment)))
    if argument.layout is not None:
        told = [f for f in argument.layout.fields if f.constraints != Constraints()]
        return inline([*rows, *((as_key(f.path), inline(_limit_rows(f.constraints))) for f in told)])
    return inline([*rows, *_limit_rows(argument.constraints)])


def _limit_rows(limits: Constraints) -> list[tuple[str, str]]:
    """What is said of values."""
    if limits.offsets is not None:
        return [("offsets", number_or_text(limits.offsets))]
    rows = list[tuple[str, str]]()
    if limits.values:
        rows.append(("values", str(list(limits.values))))
        rows += [("shares", str(list(limits.shares)))] if limits.shares else []
        return [*rows, ("sorted", "true")] if limits.sorted else rows
    for key, text, each in (("low", limits.low, limits.lows), ("high", limits.high, limits.highs)):
        if text is not None:
            rows.append((key, listed(each) if each else number_or_text(text)))
    rows += [(k, "true") for k in ("sorted", "nonnegative", "positive", "unique") if getattr(limits, k)]
    if not limits.finite:
        rows.append(("finite", "false"))
    return rows


def launch_rows(launch: Launch, is_plan: bool, taken: TakenStructures | None = None) -> list[tuple[str, str]]:
    """The lines of one [launch] or [[launch]]. ``taken``: the structures that its kernel may take."""
    rows = [("entry", quoted(launch.entry))] if is_plan else []
    rows += [("grid", dimensions(launch.grid)), ("block", dimensions(launch.block))]
    if launch.shared_bytes != "0":
        rows.append(("shared_bytes", number_or_text(launch.shared_bytes)))
    if launch.repeated:
        rows.append(("repeat", number_or_text(launch.repeat)))
    if is_plan:
        args = [_plan_argument(a) for a in launch.args]
        if taken is not None:
            args = [quoted(a) if a in taken.variables else a for a in taken.passed(launch, args)]
        rows.append(("args", "[" + ", ".join(args) + "]"))
    return rows


def _plan_argument(arg: str | ScalarArgument) -> str:
    if isinstance(arg, str):
        return quoted(arg)
    return inline([("dtype", quoted(arg.dtype)), ("value", number_or_text(arg.value))])
