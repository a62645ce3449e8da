"""What a kernel is told its threads' ids, and the extents of its launch, are."""

from __future__ import annotations

from collections.abc import Mapping

from fsr.source.form import Expr, Member, Name
from fsr.source.mapping import map_exprs
from fsr.source.walk import Block

Ids = Mapping[tuple[str, str], Expr]
"""By variable and axis: ('threadIdx', 'x')."""


def with_ids(body: Block, told: Ids) -> Block:
    """Statements with other expressions for ids and extents; those that are not told stay."""

    def change(e: Expr) -> Expr:
        return told.get((e.base.text, e.name), e) if isinstance(e, Member) and isinstance(e.base, Name) else e

    return map_exprs(body, change)
