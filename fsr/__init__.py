"""Feature Search and Reinforcement: a faster GPU kernel, proven to do the same.

The public API, loaded on first use: ``refine``, ``evaluate``, ``lookup``, ``lookup_source``, ``Run`` and what they take
and give (docs/python.md).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fsr.app.api import evaluate, refine
    from fsr.app.checking import Judgement
    from fsr.app.sources import lookup_source
    from fsr.cache.lookup import find as lookup
    from fsr.errors import FsrError
    from fsr.runs.options import RefineOptions
    from fsr.runs.record import RunRecord
    from fsr.runs.result import Result
    from fsr.runs.run import Run

__version__ = "0.1.0"
__all__ = [
    "FsrError",
    "Judgement",
    "RefineOptions",
    "Result",
    "Run",
    "RunRecord",
    "evaluate",
    "lookup",
    "lookup_source",
    "refine",
]

_HOME = {
    "refine": "fsr.app.api", "evaluate": "fsr.app.api", "lookup": "fsr.cache.lookup",
    "lookup_source": "fsr.app.sources", "Run": "fsr.runs.run",
    "RunRecord": "fsr.runs.record", "RefineOptions": "fsr.runs.options", "Result": "fsr.runs.result",
    "Judgement": "fsr.app.checking", "FsrError": "fsr.errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the API on use, so that ``fsr lookup`` stays fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'fsr' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), "find" if name == "lookup" else name)
