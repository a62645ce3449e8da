"""A scratch buffer as a kernel knows it, and what is raised where its layout has to stay."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.source.form import Expr


class Unfit(Exception):  # noqa: N818  # not an error: nothing is offered
    """Raised where a pointer is used in a way that a pointer with a stride does not allow."""


@dataclass(frozen=True)
class Buffer:
    """A parameter that is scratch memory: its slices' length, what there are of them (as the kernel names it), and the
    number before it that all indices begin at (None: 0)."""

    parameter: str
    type: str
    length: str
    slices: Expr
    start: Expr | None = None
