"""A running Ray cluster: how it is named, which GPUs it has, and the files of a kernel that its nodes need."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.errors import MissingToolError

TYPE = "accelerator_type:"  # a resource of every node with GPUs that Ray knows the model of


@dataclass(frozen=True, slots=True)
class ClusterName:
    """A cluster's address, and the type of its GPUs that is meant ('H200', as Ray names it); '' for any."""

    address: str
    gpu_type: str = ""

    @classmethod
    def parse(cls, text: str) -> ClusterName:
        """Of ADDRESS or ADDRESS#TYPE."""
        address, _, gpu_type = text.partition("#")
        return cls(address, gpu_type)

    def __str__(self) -> str:
        return f"{self.address}#{self.gpu_type}" if self.gpu_type else self.address


def gpus_by_type(nodes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many GPUs of each type the nodes that live have, the rows of ``ray.nodes()``; '' is what Ray knows no type
    of."""
    found: Counter[str] = Counter()
    for node in nodes:
        resources = node["Resources"] if node["Alive"] else {}
        types = [name.removeprefix(TYPE) for name in resources if name.startswith(TYPE)]
        found[types[0] if types else ""] += int(resources.get("GPU", 0))
    return {name: count for name, count in found.items() if count}


def require_type(name: ClusterName, found: Mapping[str, int]) -> None:
    """Raises MissingToolError when the cluster has no GPU of the type that is meant."""
    if name.gpu_type and name.gpu_type not in found:
        types = ", ".join(f"{count} {kind}" for kind, count in found.items() if kind)
        raise MissingToolError(
            f"the Ray cluster at {name.address!r} has no GPU of the type {name.gpu_type!r}",
            expected=f"one of its types: {types}" if types else "a node with GPUs of a type that Ray knows",
            where="--ray", fix="`ray status` says what the cluster has",
        )  # fmt: skip


def copy_modules(kernel_folder: Path, place: Path) -> Path:
    """The Python files beside a kernel, copied into an empty folder: its contract names a reference among them, which
    may import the others."""
    for path in kernel_folder.glob("*.py"):
        if path.is_file():
            shutil.copyfile(path, place / path.name)
    return place
