"""What inference knows of a kernel so far, and what stays open."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsr.analysis.polynomial import Poly
from fsr.analysis.ranges import Walk
from fsr.records import Launch
from fsr.source.file import KernelFile
from fsr.source.form import KernelForm
from fsr.source.signature import Signature

AXES = ("x", "y", "z")


@dataclass
class Finding:
    """What is known so far, and the open points by the key of the block that they concern."""

    file: KernelFile
    signature: Signature
    form: KernelForm
    launch: Launch | None = None
    walk: Walk | None = None
    bounds: dict[str, Poly] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)
    nonempty: set[str] = field(default_factory=set)  # sizes that must be at least 1
    summed: set[str] = field(default_factory=set)
