"""How much memory this machine has."""

from __future__ import annotations

import os


def host_memory_bytes() -> int:
    """Bytes of physical memory, used or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
