"""Feature Search and Reinforcement: a faster GPU kernel, proven to do the same.

The public API, loaded on first use: ``refine``, ``evaluate``, ``lookup``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"
__all__ = ["evaluate", "lookup", "refine"]

_HOME = {"refine": "fsr.app", "evaluate": "fsr.app", "lookup": "fsr.cache.lookup"}


def __getattr__(name: str) -> Any:
    """Import the API on use, so that ``fsr lookup`` stays fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'fsr' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), "find" if name == "lookup" else name)
