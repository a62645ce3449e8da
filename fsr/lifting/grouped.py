"""Dimensions that a kernel goes through in groups: ``channels = groups * each`` of an image, a block a group.

A contract that calls both by one name tells the watched elements apart by an index whose quotient matters, which no
affine form has. Where launches count some factors of an extent and not the others, each factor is a dimension.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fsr.contract.model import Contract
from fsr.records import Role

_PRODUCT = re.compile(r"\((\s*[A-Za-z_]\w*\s*(?:\*\s*[A-Za-z_]\w*\s*)+)\)")


def in_groups(contract: Contract) -> list[Contract]:
    """The contract with such extents as products, which views take apart: what is counted in front of the others, then
    behind them (every so many-th channel is a group). Empty where there are none. No element's place is another."""
    counted = [text for launch in contract.plan.launches for text in (*launch.grid, *launch.block)]
    found = [_regrouped(contract, counted, behind) for behind in (False, True)]
    return found if found[0] != contract else []


def _regrouped(contract: Contract, counted: list[str], behind: bool) -> Contract:
    args = tuple(
        a if a.role in (Role.SCALAR, Role.NULL) else replace(a, shape=tuple(_of(x, counted, behind) for x in a.shape))
        for a in contract.args
    )
    return replace(contract, args=args)


def _of(extent: str, counted: list[str], behind: bool) -> str:
    product = _PRODUCT.fullmatch(extent)
    if product is None:
        return extent
    factors = [factor.strip() for factor in product[1].split("*")]
    outer = [f for f in factors if any(re.search(rf"\b{f}\b", text) for text in counted)]
    inner = [f for f in factors if f not in outer]
    if not (outer and inner):
        return extent
    return " * ".join(inner + outer if behind else outer + inner)
