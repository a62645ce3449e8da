"""What names stand for while a text is worked out: a thread's variables, arrays and structures, or memory elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsr.analysis.records import Kept
from fsr.source.form import Expr
from fsr.transform.evaluated.c_numbers import Kind


@dataclass(frozen=True, slots=True)
class Scalar:
    """A variable. ``expr``: it in the text that is made; ``key``: by which its value is known; ``kind``: None where
    it is no whole number; ``kept``: a member, whose memory has its value at any time."""

    expr: Expr
    key: str
    type: str
    kind: Kind | None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """An array of the thread's, or a part of one."""

    expr: Expr
    dims: tuple[int, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Record:
    """A structure of the thread's."""

    expr: Expr
    key: str
    members: Mapping[str, Kept]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A name for the address of a variable or structure."""

    to: Scalar | Record


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An element of an array of the thread's, or of memory that no variable of it lies in, or the address of such."""

    expr: Expr


Place = Scalar | Array | Record | Pointer | Elsewhere
Scope = dict[str, Place]
