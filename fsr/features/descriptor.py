"""Where a candidate lies in the grid of designs."""

from __future__ import annotations

import math

from fsr.features.schema import Binary, Features, Source

Cell = tuple[int, int, int, int]


def descriptor(features: Features) -> Cell:
    """The cell of a candidate from its features (missing ones count as 0): log2 buckets of threads a block
    and of grid threads, shared memory (none, up to 16 KiB, more) and the number of launches up to 3."""
    source, binary = features.source or Source(), features.binary or Binary()
    threads, total = source.threads_per_block or 0, source.grid_threads or 0
    shared, launches = binary.shared_bytes or 0, 1 if source.launches is None else source.launches
    return (
        int(math.log2(threads)) if threads >= 1 else 0,
        int(math.log2(total) / 3) if total >= 1 else 0,
        0 if shared == 0 else 1 if shared <= 16384 else 2,
        min(launches, 3),
    )
