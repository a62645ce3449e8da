"""A contract without a kernel: a TOML file that tells the arguments with their types, the sizes and the reference.

The keys are a contract's (docs/contract.md). A kernel's parameters are not there to be read, so ``[args]`` lists them
all in their order, each buffer with its dtype; ``reference`` is needed, ``[launch]`` is not: who writes the kernel says
how it is launched. ``description`` may say more in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fsr.contract.build import build
from fsr.contract.model import Contract, Origin
from fsr.contract.read import RawContract, parse_contract
from fsr.contract.validate import validate
from fsr.errors import ContractError, UsageError
from fsr.files import Unreadable, read_file
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.file import KernelFile

ANY_LAUNCH = {"grid": 1, "block": 1}  # holds the place of the one that the kernel's author says
_EXAMPLE = 'x = {dtype = "float32", role = "in", shape = ["rows", "cols"]}'


@dataclass(frozen=True, slots=True)
class Described:
    """contract: with the stated launch, else ANY_LAUNCH. signature: the kernel's declaration in C++. reference: the
    text of the reference's file. launched: whether a launch was stated."""

    contract: Contract
    signature: str
    reference: str
    description: str = ""
    launched: bool = False

    @property
    def stub(self) -> str:
        """A kernel of that signature that does nothing."""
        return headers_of(self.contract) + self.signature + "\n{\n}\n"


def read_described(path: Path) -> Described:
    """The description in a file. Raises UsageError when it cannot be read, ContractError with the line for the rest."""
    try:
        text = read_file(path).decode()
    except Unreadable as fault:
        raise UsageError(
            f"the description cannot be read: {fault.why}", where=str(path), fix="check the path"
        ) from None
    except UnicodeDecodeError as fault:
        raise ContractError(f"the description is no text in UTF-8: {fault.reason}", where=str(path)) from None
    raw = parse_contract(text, Origin("sidecar", str(path), 1), 0)
    data = dict(raw.data)
    description, launched = data.pop("description", ""), "launch" in data
    if not isinstance(description, str):
        raise ContractError(f"the description is {description!r}", expected="a text", where=raw.where("description"))
    if not isinstance(data.get("reference"), str):
        raise ContractError(
            "there is no reference", expected='reference = "module.py:function", a file beside this one',
            where=str(path), fix="write what the kernel computes as a NumPy function: it decides what is right",
        )  # fmt: skip
    signature = _signature(raw)
    raw = replace(raw, data={**data, "launch": data.get("launch", ANY_LAUNCH)})
    file = KernelFile.from_text(signature + "\n{\n}\n", path)
    contract = validate(build(raw, file, None), raw.where)
    module = path.parent / data["reference"].partition(":")[0]
    return Described(contract, signature, module.read_text("utf-8", "replace"), description, launched)


def headers_of(contract: Contract) -> str:
    """The includes that the element types of the arguments need, newline at the end."""
    headers = sorted({BY_DTYPE[a.dtype].header for a in contract.args} - {""})
    return "".join(f"#include <{header}>\n" for header in headers)


def _signature(raw: RawContract) -> str:
    """``__global__ void NAME(PARAMETERS)`` as the arguments say."""
    entry, table = raw.data.get("entry"), raw.data.get("args")
    if not isinstance(entry, str) or not entry.isidentifier():
        raise ContractError(
            f"the entry is {entry!r}", expected='the name that the kernel is to have: entry = "softmax"',
            where=raw.where("entry"),
        )  # fmt: skip
    if not isinstance(table, Mapping) or not table:
        raise ContractError("there are no arguments", expected=f"[args], each in its order: {_EXAMPLE}",
                            where=raw.where("args"))  # fmt: skip
    sizes = raw.data.get("sizes")
    params = [_parameter(raw, name, one, sizes if isinstance(sizes, Mapping) else {}) for name, one in table.items()]
    return f"__global__ void {entry}({', '.join(params)})"


def _parameter(raw: RawContract, name: str, told: Any, sizes: Mapping[str, Any]) -> str:
    fields = told if isinstance(told, Mapping) else {}
    buffer = "shape" in fields or fields.get("role") in ("in", "out", "inout")
    whole = not buffer and (name in sizes or isinstance(fields.get("value"), str))
    dtype = fields.get("dtype", "int32" if whole else None)
    if dtype not in BY_DTYPE or not name.isidentifier():
        raise ContractError(
            f"the argument {name!r} has the dtype {dtype!r}" if dtype else f"the argument {name!r} has no dtype",
            expected=f"one of {', '.join(BY_DTYPE)}; as in {_EXAMPLE}", where=raw.where("args", name),
            fix="there is no kernel to read it from: say it here",
        )  # fmt: skip
    spelling = BY_DTYPE[dtype].spelling
    const = "const " if fields.get("role") == "in" else ""
    return f"{const}{spelling} *{name}" if buffer else f"{spelling} {name}"
