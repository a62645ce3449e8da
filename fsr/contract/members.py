"""What a contract says of structures that kernels take by value, as what it says of their members.

``p.width = {...}``, ``[args.p]`` with a line for each member and ``"p.width" = {...}`` are the same TOML but for the
quotes. What follows reads a table with an entry for each parameter that stands for a member
(:mod:`fsr.source.flattening`), under that parameter's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fsr.contract.fields import VALUE_KEYS, did_you_mean
from fsr.contract.model import Argument, Contract
from fsr.contract.read import RawContract
from fsr.errors import ContractError, FsrError
from fsr.source.file import KernelFile
from fsr.source.flattening import FlatKernel, FlatMember

_EACH = ("low", "high", "value")  # what may be a list: one for each number beneath
_SPECIFIES = frozenset((*_EACH, "dtype", "role", "shape", "alignment", "null", *VALUE_KEYS))


@dataclass(frozen=True, slots=True)
class Variable:
    """A structure as a contract names it. ``members``: that some kernel uses, by path, with the name as a parameter.
    ``known``: all paths."""

    name: str
    kernel: str
    type: str
    members: Mapping[str, tuple[str, FlatMember]]
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """The structures of a contract, and the kernels that take them."""

    variables: tuple[Variable, ...] = ()
    kernels: tuple[FlatKernel, ...] = ()

    def spoken(self) -> dict[str, str]:
        """How people call each parameter that stands for a member."""
        return {name: f"{v.name}.{path}" for v in self.variables for path, (name, _) in v.members.items()}

    def named(self, contract: Contract) -> Contract:
        """The contract with its arguments called by their members."""
        spoken = self.spoken()
        args = tuple(replace(a, member=spoken.get(a.name, "")) for a in contract.args)
        return replace(contract, args=args, structures=self.kernels)


def told(fault: ContractError, spoken: Mapping[str, str]) -> ContractError:
    """An error that names members as people do."""

    def said(text: str) -> str:
        return re.sub(r"\b[A-Za-z_]\w*", lambda word: spoken.get(word[0], word[0]), text)

    fault.what, fault.expected, fault.fix = said(fault.what), said(fault.expected), said(fault.fix)
    return fault


def members_of(file: KernelFile, entry: str) -> Members:
    """Those of one kernel that is launched with its own parameters."""
    kernel = file.flat_kernel(entry)
    return Members() if kernel is None else Members(tuple(_own(kernel)), (kernel,))


def with_members(raw: RawContract, file: KernelFile, entry: str | None) -> tuple[RawContract, Members]:
    """A contract whose arguments are parameters, and the structures that it speaks of. Raises ContractError for a
    member that there is not, or of which nothing is said; of kernels that are not there :mod:`fsr.contract.build`
    tells."""
    launches, table = raw.data.get("launch"), raw.data.get("args", {})
    if not isinstance(table, Mapping):
        return raw, Members()
    try:
        found = _of_plan(raw, file, entry) if isinstance(launches, list) else _of_one(raw, file, entry)
    except ContractError:
        raise
    except FsrError:
        return raw, Members()
    if not found.variables:
        return raw, found
    lines = dict(raw.lines)
    own = {v.name: v for v in found.variables}
    told, args = _nested(raw, table, own), dict[str, Any]()
    for name in dict.fromkeys([*told, *own]):
        if name not in own:
            args[name] = told[name]
            continue
        flat, places = _entries(raw, own[name], told.get(name, {}))
        args |= flat
        lines |= {("args", n): lines[place] for n, place in places.items() if place in lines}
    data = {**raw.data, "args": args}
    if isinstance(launches, list):
        data["launch"] = [_passing(launch, own, file, entry or raw.data.get("entry")) for launch in launches]
    return replace(raw, data=data, lines=lines), found


def _of_one(raw: RawContract, file: KernelFile, entry: str | None) -> Members:
    stated = entry or raw.data.get("entry")
    return members_of(file, file.choose(stated if isinstance(stated, str) else None))


def _of_plan(raw: RawContract, file: KernelFile, entry: str | None) -> Members:
    """The structures that launches pass by name, with what any of their kernels uses."""
    found: dict[str, list[tuple[FlatKernel, int]]] = {}
    kernels = dict[str, FlatKernel]()
    for launch, kernel in _launched(raw.data["launch"], file, entry or raw.data.get("entry")):
        kernels[kernel.name] = kernel
        names = launch.get("args", [p.name for p in kernel.params])
        for at, (name, param) in enumerate(zip(names, kernel.params, strict=False)):
            if param.members and isinstance(name, str):
                found.setdefault(name, []).append((kernel, at))
    variables, taken = list[Variable](), set[str]()
    for name, places in found.items():
        types = {k.params[at].type for k, at in places}
        if len(types) > 1:
            raise ContractError(
                f"launches pass {name} to parameters of different types: {', '.join(sorted(types))}",
                expected="one structure", where=raw.where("launch"), fix="give each a name of its own",
            )  # fmt: skip
        members = dict[str, tuple[str, FlatMember]]()
        for kernel, at in places:
            for member in kernel.params[at].members:
                if member.path not in members:
                    flat = _free(f"{name}_{re.sub(r'[^A-Za-z0-9_]+', '_', member.path).strip('_')}", taken)
                    taken.add(flat)
                    members[member.path] = flat, member
                elif member.used:
                    members[member.path] = members[member.path][0], member
        param = places[0][0].params[places[0][1]]
        variables.append(Variable(name, places[0][0].name, param.type, members, param.known))
    return Members(tuple(variables), tuple(kernels.values()))


def _launched(
    launches: Sequence[Any], file: KernelFile, main: Any
) -> Iterator[tuple[Mapping[str, Any], FlatKernel]]:  # fmt: skip
    for launch in launches:
        entry = (launch.get("entry") or main) if isinstance(launch, Mapping) else None
        kernel = file.flat_kernel(entry) if isinstance(entry, str) else None
        if kernel is not None:
            yield launch, kernel


def _own(kernel: FlatKernel) -> Iterator[Variable]:
    for param in kernel.params:
        if param.members:
            members = {m.path: (m.name, m) for m in param.members}
            yield Variable(param.name, kernel.name, param.type, members, param.known)


def _passing(launch: Any, own: Mapping[str, Variable], file: KernelFile, main: Any) -> Any:
    """A launch that passes members where it passed structures."""
    for told, kernel in _launched([launch], file, main):
        names = told.get("args", [p.name for p in kernel.params])
        if not isinstance(names, list) or len(names) != len(kernel.params):
            return told
        args = list[Any]()
        for name, param in zip(names, kernel.params, strict=True):
            taken = own.get(name) if isinstance(name, str) and param.members else None
            args += [name] if taken is None else [taken.members[m.path][0] for m in param.members]
        return {**told, "args": args}
    return launch


def _nested(raw: RawContract, table: Mapping[str, Any], own: Mapping[str, Variable]) -> dict[str, Any]:
    """``"p.width"`` as ``width`` of ``p``, in the table's order."""
    found = dict[str, Any]()
    for name, value in table.items():
        first, dot, rest = name.partition(".")
        if first not in own:
            found[name] = value
        elif dot:
            found.setdefault(first, {})[rest] = value
        elif isinstance(value, Mapping):
            found[first] = {**found.get(first, {}), **value}
        else:
            raise ContractError(
                f"args.{name} is {value!r}", expected=f"a table of the members of {own[first].type}",
                where=raw.where("args", name), fix=_how(own[first]),
            )  # fmt: skip
    return found


def _entries(
    raw: RawContract, variable: Variable, told: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:  # fmt: skip
    """What is said of each member, by its name as a parameter, and the keys where that stands."""
    require_known(raw, variable, told)
    sizes = raw.data.get("sizes", {})
    entries, places = dict[str, Any](), dict[str, tuple[str, ...]]()
    for path, (name, member) in variable.members.items():
        spec, keys = said(told, path, variable.known)
        if spec is not None:
            entries[name], places[name] = spec, ("args", variable.name, *keys)
        elif not member.used:
            entries[name] = _any(member)
        elif path.rpartition(".")[2] in sizes and not member.pointer:
            entries[name] = {"value": path.rpartition(".")[2]}
    return entries, places  # of others the reader of arguments says that they are missing


def _any(member: FlatMember) -> dict[str, Any]:
    """What is said of a member that stands for a structure of which nothing is used: a number of any value, since a
    launcher goes to the original where an argument is not as it is said to be."""
    if member.pointer:
        return {"null": True}
    dtype = member.dtype or ""
    if "int" not in dtype:
        return {"low": 0, "high": 1} if dtype == "bool" else {}
    bits = int(dtype.partition("int")[2])
    if dtype.startswith("u"):
        return {"low": 0, "high": f"2 ** {bits} - 1"}
    return {"low": f"0 - 2 ** {bits - 1}", "high": f"2 ** {bits - 1} - 1"}


def said(told: Any, path: str, known: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """What is said of a member, and the keys where that stands: by itself, or of the structure, vector or array that it
    belongs to, of which a list says one for each number."""
    for spelling in _spellings(path):
        for rest, node in _beneath(told, spelling):
            beneath = [p for p in known if p == spelling or p.startswith((f"{spelling}.", f"{spelling}["))]
            if not spelling:
                beneath = list(known)
            return _share(node, beneath.index(path), len(beneath)), rest
    return None, ()


def _spellings(path: str) -> Iterator[str]:
    """``a.b[1][2].x``, then what holds it: ``a.b[1][2]``, ``a.b[1]``, ``a.b``, ``a``, and the whole."""
    yield path
    while path:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
        yield path


def _beneath(told: Any, spelling: str, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The entries that stand at a path, however its dots and quotes were written."""
    if not isinstance(told, Mapping):
        return
    if not spelling:
        if told and set(told) <= _SPECIFIES and not all(isinstance(v, Mapping) for v in told.values()):
            yield keys, told
        return
    for key, value in told.items():
        if key == spelling:
            yield from _beneath(value, "", (*keys, key))
        elif spelling.startswith(key) and spelling[len(key)] in ".[":
            yield from _beneath(value, spelling[len(key) :].removeprefix("."), (*keys, key))


def _share(node: Mapping[str, Any], at: int, count: int) -> dict[str, Any]:
    """One number's share of lists."""
    lists = {k: v for k, v in node.items() if k in _EACH and isinstance(v, list) and len(v) == count and count > 1}
    return {**node, **{k: v[at] for k, v in lists.items()}}


def require_known(raw: RawContract, variable: Variable, told: Mapping[str, Any]) -> None:
    """Raises ContractError for what is said of a member that there is not."""
    known = {s for path in variable.known for s in _spellings(path)}

    def walk(node: Any, at: str, keys: tuple[str, ...]) -> None:
        if at not in known:
            members = list(dict.fromkeys(re.sub(r"\[.*", "", p) for p in variable.known))
            raise ContractError(
                f"the contract names the member {variable.name}.{at}, which {variable.type} does not have",
                expected=f"one of: {', '.join(members)}", where=raw.where("args", variable.name, *keys),
                fix=did_you_mean(at, members),
            )  # fmt: skip
        if not isinstance(node, Mapping) or (not at and not node):
            return
        if set(node) <= _SPECIFIES and not all(isinstance(v, Mapping) for v in node.values()):
            return
        for key, value in node.items():
            walk(value, f"{at}{'' if key.startswith('[') or not at else '.'}{key}", (*keys, key))

    walk(told, "", ())


def _how(variable: Variable) -> str:
    return f"write {variable.name}.{variable.known[0]} = {{...}}, a line for each member"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def argument_key(argument: Argument) -> str:
    """An argument as a key of ``[args]``."""
    return as_key(argument.member or argument.name)


def as_key(name: str) -> str:
    """A name with its members as TOML has it."""
    return name if re.fullmatch(r"[\w.]+", name) else f'"{name}"'
