"""Names for expressions of sizes, which stand for them wherever they are written: sizes that others tell, and macros
that the contract gives a whole number (``defines = ["Q1D=8"]``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fsr.contract.read import RawContract
from fsr.errors import ContractError
from fsr.expressions import names

_NAME = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*\(?\s*(\d+)\s*\)?\s*")


def is_derived(value: Any) -> bool:
    """Whether an entry of [sizes] is an expression of others, no size that callers choose."""
    return isinstance(value, str) and _NAME.search(value) is not None


def written_out(raw: RawContract, text: str) -> str:
    """An expression with derived sizes as what they stand for; as it is where none is named."""
    stated = raw.data.get("sizes")
    if not macro_values(raw) and (not isinstance(stated, Mapping) or not any(map(is_derived, stated.values()))):
        return text
    return substituted(text, derived_sizes(raw))


def macro_values(raw: RawContract) -> dict[str, str]:
    """The macros that the contract gives a whole number, but for those that are called as a size."""
    stated, sizes = raw.data.get("defines"), raw.data.get("sizes")
    texts = [text for text in stated if isinstance(text, str)] if isinstance(stated, list) else []
    found = (m for text in texts if (m := _MACRO.fullmatch(text)) is not None)
    taken = sizes if isinstance(sizes, Mapping) else {}
    return {m[1]: m[2] for m in found if m[1] not in taken}


def derived_sizes(raw: RawContract) -> Mapping[str, str]:
    """What each stands for, made of sizes that callers choose. Raises ContractError for one that names what is no size,
    or itself."""
    stated = raw.data.get("sizes") or {}
    left = {name: value for name, value in stated.items() if is_derived(value)}
    chosen, found = stated.keys() - left.keys(), macro_values(raw)
    for name, text in left.items():
        try:
            names(text)
        except ContractError as fault:
            fault.where = raw.where("sizes", name)
            raise
    while left:
        ready = [name for name, text in left.items() if names(text) <= chosen | found.keys()]
        if not ready:
            name, text = next(iter(left.items()))
            unknown = sorted(names(text) - chosen - found.keys())
            raise ContractError(
                f"the size {name} is {text!r}, of {', '.join(unknown)}",
                expected="a range, {min = 1, max = 1024}, or an expression of other sizes: "
                + (", ".join(sorted(chosen)) or "there are none"),
                where=raw.where("sizes", name), fix="name those, or give what is missing a range of its own",
            )  # fmt: skip
        for name in ready:
            found[name] = f"({substituted(left.pop(name), found)})"
    return found


def substituted(text: str, known: Mapping[str, str]) -> str:
    """An expression with other expressions for names."""
    return _NAME.sub(lambda match: known.get(match[0], match[0]), text)
