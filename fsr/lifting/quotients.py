"""Sizes that a source divides by a number, as the radius of a window: ``int radius = width / 2``. Read from the source,
they are sizes of their own to what is watched, called by the size expression that tells them."""

from __future__ import annotations

import re

from fsr.contract.model import Contract
from fsr.records import Role

_MOST = 4
_DIVIDED = re.compile(
    r"\b(?P<name>[A-Za-z_]\w*)\s*(?:(?P<sign>[-+])\s*(?P<more>\d)\s*\)\s*)?\)?\s*(?P<how>/|>>)\s*(?P<by>\d{1,2})\b(?![.\w])"
)


def quotients(contract: Contract, source: str) -> tuple[str, ...]:
    """As size expressions, each once: of sizes, and of scalars that sizes tell."""
    told = {a.name: a.value for a in contract.args if a.role is Role.SCALAR and a.value is not None}
    values = {s.name: s.name for s in contract.sizes} | told
    found = dict[str, None]()
    for m in _DIVIDED.finditer(source):
        by = int(m["by"]) if m["how"] == "/" else 1 << int(m["by"])
        value = values.get(m["name"], "")
        if by > 1 and not value.isdigit() and value:
            inner = value if value.isidentifier() else f"({value})"
            inner = f"({inner} {m['sign']} {m['more']})" if m["more"] else inner
            found[f"({inner} // {by})"] = None
    return tuple(found)[:_MOST]
