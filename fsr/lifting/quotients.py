"""Sizes that a source divides by a number, as the radius of a window: ``int radius = width / 2``. Read from the source,
they are sizes of their own to what is watched, called by the size expression that tells them. So are extents of what is
subsampled, ``ceil_div(columns, 2)``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fsr.contract.model import Contract
from fsr.records import Role

_MOST = 4
_MOST_APART = 4  # of an extent's elements: of more it is a block's share, not a subsampled row
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SHARE = re.compile(r"ceil_div\(\s*(?P<name>[A-Za-z_]\w*)\s*,\s*(?P<by>\d+)\s*\)")
_DIVIDED = re.compile(
    r"\b(?P<name>[A-Za-z_]\w*)\s*(?:(?P<sign>[-+])\s*(?P<more>\d)\s*\)\s*)?\)?\s*(?P<how>/|>>)\s*(?P<by>\d{1,2})\b(?![.\w])"
)


def quotients(contract: Contract, source: str) -> tuple[str, ...]:
    """As size expressions, each once: of sizes, and of scalars that sizes tell."""
    told = {a.name: a.value for a in contract.args if a.role is Role.SCALAR and a.value is not None}
    values = {s.name: s.name for s in contract.sizes} | told
    found = dict[str, None]()
    for m in _DIVIDED.finditer(_COMMENT.sub(" ", source)):
        by = int(m["by"]) if m["how"] == "/" else 1 << int(m["by"])
        value = values.get(m["name"], "")
        if by > 1 and not value.isdigit() and value:
            inner = value if value.isidentifier() else f"({value})"
            inner = f"({inner} {m['sign']} {m['more']})" if m["more"] else inner
            found[f"({inner} // {by})"] = None
    return tuple({**found, **dict.fromkeys(_shares(contract))})[:_MOST]


def _shares(contract: Contract) -> Iterator[str]:
    """Extents that are a size by a few, rounded up."""
    for m in _SHARE.finditer(" ".join(extent for a in contract.buffers() for extent in a.shape)):
        if 1 < (by := int(m["by"])) <= _MOST_APART:
            yield f"(({m['name']} + {by - 1}) // {by})"
