"""Candidates in files: a .cu whose first comment lines say how it is launched.

    // attacks: softmax            any key: value lines, kept as notes
    // grid: ceil_div(rows, 8)     up to three parts, separated by | or commas
    // block: 32 8
    // shared: 4 * cols
    // entry: gemm<16>
    // args: x y rows cols mark    contract arguments and scratch, in the kernel's order; null is a null pointer
    // scratch: mark int32 rows    name, dtype, count, and 'zeroed' where it is; may come several times
    // repeat: steps               how often it is launched in a row; 'step' in a scalar counts from 0
    // launch: entry | grid | block | shared | args     instead of the above, once for each launch of a plan;
    //                                                  with '| repeat' at its end where it is repeated

Whatever is not said is as in the contract's own plan. In ``launch`` lines, grid and block separate their parts with
spaces outside parentheses, and ``int32=EXPRESSION`` is a scalar of the launch's own. A size may be passed by its name
alone: its type is then the kernel's parameter's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fsr.contract.derived import substituted
from fsr.contract.model import Contract
from fsr.contract.validate import validate
from fsr.errors import ContractError, SourceError, UsageError
from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch
from fsr.source.file import KernelFile
from fsr.source.signature import signature

_LINE = re.compile(r"//\s*([a-z][a-z ]*):\s*(.+?)\s*$")
_SAYS_PLAN = frozenset(("entry", "grid", "block", "shared", "args", "repeat", "scratch", "launch", "flags"))
Notes = dict[str, list[str]]


def read_notes(path: Path) -> Notes:
    """The ``// key: value`` lines at the top of a file, all values of a key in order."""
    return notes_of(path.read_text())


def notes_of(text: str) -> Notes:
    """The same of a text."""
    notes: Notes = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            notes.setdefault(match[1], []).append(match[2])
        elif not line.startswith("//"):
            break
    return notes


def read_candidate(path: Path, contract: Contract) -> Candidate:
    """The candidate of a file, its plan completed from the contract's. Raises UsageError on a malformed line."""
    return candidate_of(path.read_text(), contract, str(path))


def candidate_of(text: str, contract: Contract, where: str) -> Candidate:
    """The same of a text; ``where``: what an error calls it."""
    notes = notes_of(text)
    base = contract.plan.launches[0]
    try:
        scratch = tuple(_scratch(text) for text in notes.get("scratch", []))
        if "launch" in notes:
            launches = tuple(_launch(text) for text in notes["launch"])
        else:
            launches = (
                Launch(
                    notes.get("entry", [base.entry])[0],
                    _dims(notes["grid"][0]) if "grid" in notes else base.grid,
                    _dims(notes["block"][0]) if "block" in notes else base.block,
                    notes.get("shared", [base.shared_bytes])[0],
                    _passed(notes["args"][0]) if "args" in notes else base.args,
                    notes.get("repeat", [base.repeat])[0],
                ),
            )
    except (ValueError, IndexError) as fault:
        raise UsageError(
            f"the launch of this candidate cannot be read: {fault}",
            expected="// grid:, // block:, // shared:, // args:, // scratch: or // launch: lines",
            where=where,
            fix="correct the comment lines at its top",
        ) from None
    flags = tuple(notes.get("flags", [""])[0].split())
    plan = _without_names(Plan(launches, scratch, flags), dict(contract.named))
    return Candidate(text, _sizes_typed(plan, text, contract) if notes.keys() & {"args", "launch"} else plan)


def _without_names(plan: Plan, named: Mapping[str, str]) -> Plan:
    """The plan with sizes that others tell written out."""

    def told(e: str) -> str:
        return substituted(e, named)

    def launch(one: Launch) -> Launch:
        grid, block = ((told(x), told(y), told(z)) for x, y, z in (one.grid, one.block))
        args = tuple(a if isinstance(a, str) else replace(a, value=told(a.value)) for a in one.args)
        return Launch(one.entry, grid, block, told(one.shared_bytes), args, told(one.repeat))

    scratch = tuple(replace(s, count=told(s.count)) for s in plan.scratch)
    return replace(plan, launches=tuple(map(launch, plan.launches)), scratch=scratch)


def _sizes_typed(plan: Plan, text: str, contract: Contract) -> Plan:
    """The plan with sizes that are passed by name as scalars of their parameters' types; names that are passed where
    the kernel has no number stay, for the error that they are worth."""
    known = contract.names_for(plan)
    sizes = {s.name for s in contract.sizes} - known
    if not any(a in sizes for launch in plan.launches for a in launch.args if isinstance(a, str)):
        return plan
    file = KernelFile.from_text(text)

    def typed(launch: Launch) -> Launch:
        try:
            params = signature(file, launch.entry).params
        except SourceError:
            return launch
        args = tuple(
            ScalarArgument(p.dtype, a) if a in sizes and isinstance(a, str) and p.dtype and not p.pointer else a
            for a, p in zip(launch.args, params, strict=False)
        )
        return replace(launch, args=args) if len(params) == len(launch.args) else launch

    return replace(plan, launches=tuple(map(typed, plan.launches)))


def stated_plan(text: str, contract: Contract, where: str) -> Plan | None:
    """The plan that the lines at the top of a candidate's text say; None where they say none. Compiler flags are the
    contract's unless they are said. Raises UsageError on a malformed line, ContractError when the plan cannot be
    launched at sizes that the contract allows."""
    notes = notes_of(text)
    if not notes.keys() & _SAYS_PLAN:
        return None
    plan = candidate_of(text, contract, where).plan
    return fitting_plan(plan if "flags" in notes else replace(plan, flags=contract.plan.flags), contract, where)


def fitting_plan(plan: Plan, contract: Contract, where: str) -> Plan:
    """The plan, if it can be launched with what the contract has at every size that it allows; ``where``: what an error
    calls the candidate. Raises UsageError and ContractError."""
    known = contract.names_for(plan)
    unknown = [a for launch in plan.launches for a in launch.args if isinstance(a, str) and a not in known]
    if unknown:
        raise _unknown(unknown[0], known, [s.name for s in contract.sizes], where)
    try:
        validate(replace(contract, plan=plan), lambda *_: where)
    except ContractError as fault:  # what the kernel's contract allows is not for its candidate to change
        raise ContractError(
            fault.what, expected=fault.expected, where=where,
            fix="correct the launch in the lines at its top, or in its own contract: it must hold at every size that "
            "the kernel's contract allows",
        ) from None  # fmt: skip
    return plan


def _unknown(passed: str, known: Iterable[str], sizes: list[str], where: str) -> UsageError:
    """The error for a word among the arguments of a launch that names none."""
    number = passed if passed in sizes else "n + 1" if not sizes else f"{sizes[0]} + 1"
    spelled = f"int32={_tight(number)}"
    return UsageError(
        f"the launch of this candidate passes {passed!r}, which is "
        + ("a size, not an argument" if passed in sizes else "no argument of the contract, nor scratch"),
        expected=f"the names of arguments and scratch ({', '.join(sorted(known))}), and for other numbers, such as "
        f"sizes, their type and value: {spelled}",
        where=where,
        fix=f"write {spelled} in its place" if passed in sizes else "correct the comment lines at its top",
    )


def plan_notes(plan: Plan) -> str:
    """The lines that say a plan, from which :func:`candidate_of` reads an equal one; newline at the end."""
    lines = [f"scratch: {s.name} {s.dtype} {s.count}{' zeroed' if s.zeroed else ''}" for s in plan.scratch]
    lines += [f"flags: {' '.join(plan.flags)}"] if plan.flags else []
    for launch in plan.launches:
        args = " ".join(a if isinstance(a, str) else f"{a.dtype}={_tight(a.value)}" for a in launch.args)
        sides = (" ".join(map(_tight, side)) for side in (launch.grid, launch.block))
        repeat = [_tight(launch.repeat)] if launch.repeated else []
        lines.append("launch: " + " | ".join([launch.entry, *sides, _tight(launch.shared_bytes), args, *repeat]))
    return "".join(f"// {line}\n" for line in lines)


def _tight(expression: str) -> str:
    """An expression without blanks outside parentheses, which would separate it."""
    return expression if len(_words(expression)) <= 1 else f"({expression})"


def _scratch(text: str) -> Scratch:
    name, dtype, rest = text.split(None, 2)
    zeroed = rest.endswith(" zeroed")
    return Scratch(name, dtype, rest.removesuffix(" zeroed"), zeroed)


def _launch(text: str) -> Launch:
    entry, grid, block, shared, args, *repeat = (part.strip() for part in text.split("|"))
    if len(repeat) > 1:
        raise ValueError(f"{text!r} has {5 + len(repeat)} parts")
    return Launch(entry, _dims(" | ".join(_words(grid))), _dims(block), shared, _passed(args), *repeat)


def _passed(args: str) -> tuple[str | ScalarArgument, ...]:
    names: list[str | ScalarArgument] = []
    for word in _words(args):
        dtype, equals, value = word.partition("=")
        names.append(ScalarArgument(dtype, value) if equals else word)
    return tuple(names)


def _words(text: str, separates: Callable[[str], bool] = str.isspace) -> list[str]:
    """Split outside parentheses, at blanks or what else separates."""
    words, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if separates(character) and depth <= 0:
            words.append("")
        else:
            words[-1] += character
    return [word for word in words if word]


def _dims(text: str) -> tuple[str, str, str]:
    text = text.removeprefix("[").removesuffix("]")  # as in a contract
    parts = [part.strip() for part in _words(text, "|,".__contains__)]
    if len(parts) == 1 and " else " not in text:  # which one expression may be: 1 if n > 0 else 0
        parts = _words(text)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"{text!r} has {len(parts)} parts")
    x, y, z = (*parts, "1", "1")[:3]
    return x, y, z
