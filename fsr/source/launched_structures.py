"""Structures in a launcher's header: it takes them as the original did, and passes them or their members on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fsr.records import Launch, Plan
from fsr.source.entry import function_name
from fsr.source.flattening import FlatKernel


class MemberArgument(Protocol):
    """The part of an argument that tells whether it is a member."""

    @property
    def name(self) -> str: ...
    @property
    def member(self) -> str: ...


class LaunchingStructures(Protocol):
    """The part of a contract that tells of structures. plan: the original's."""

    @property
    def plan(self) -> Plan: ...
    @property
    def structures(self) -> Sequence[FlatKernel]: ...
    def passed(self) -> Sequence[MemberArgument]: ...


@dataclass(slots=True)
class TakenStructures:
    """``variables``: the type of each structure that the launcher takes. ``parts``: to each argument that is a member,
    its structure and the path. ``kernels``: those that take structures, by name."""

    variables: dict[str, str] = field(default_factory=dict)
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    kernels: dict[str, FlatKernel] = field(default_factory=dict)

    def parameter(self, name: str, type_: str) -> str:
        """The launcher's parameter for an argument: of a structure's members the first has it, others have none."""
        if name not in self.parts:
            return f"{type_}{'' if type_.endswith('*') else ' '}{name}"
        variable = self.parts[name][0]
        first = next(n for n, (v, _) in self.parts.items() if v == variable)
        return f"{self.variables[variable]} {variable}" if name == first else ""

    def members(self, types: Mapping[str, str]) -> list[str]:
        """Statements that give every member the name that it has as an argument."""
        found = []
        for name, (variable, path) in self.parts.items():
            type_ = types[name]
            found.append(f"{type_}{'' if type_.endswith('*') else ' '}{name} = ({type_}){variable}.{path};")
        return found

    def passed(self, launch: Launch, arguments: Sequence[str]) -> list[str]:
        """What a launch passes: structures to a kernel that takes them."""
        kernel = self.kernels.get(function_name(launch.entry))
        if kernel is None or len(arguments) != len(kernel.names):
            return list(arguments)
        found, at = list[str](), 0
        for param in kernel.params:
            name = launch.args[at]
            part = self.parts.get(name) if isinstance(name, str) and param.members else None
            found.append(part[0] if part is not None else arguments[at])
            at += max(1, len(param.members))
        return found


def structures_of(contract: LaunchingStructures) -> TakenStructures:
    """The structures that the original plan passes, under the contract's names."""
    found = TakenStructures(kernels={k.name.rpartition("::")[2]: k for k in contract.structures})
    for argument in contract.passed():
        if argument.member:
            variable, _, path = argument.member.partition(".")
            found.parts[argument.name] = variable, path
    for launch in contract.plan.launches:
        kernel, at = found.kernels.get(function_name(launch.entry)), 0
        for param in kernel.params if kernel is not None else ():
            name = launch.args[at] if at < len(launch.args) else None
            at += max(1, len(param.members))
            if param.members and isinstance(name, str) and name in found.parts:
                found.variables[found.parts[name][0]] = param.type
    return found
