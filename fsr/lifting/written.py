"""Which elements of an output to look at where only some of them are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fsr.lifting.points import Ints as Indices
from fsr.lifting.points import Mask
from fsr.lifting.sampling import ALONG, MOST_CELLS, Ints

_PART_NODES = 60_000  # beneath all elements that are looked at


def cells_about_edges(made: Mask) -> list[tuple[int, ...]]:
    """Of a whole run, elements on either side of every edge of what is written, some within, and the corners."""
    draw = np.random.default_rng(0)
    within = np.argwhere(made)
    chosen = [within[draw.permutation(len(within))[: MOST_CELLS // 2]]]
    for d, step, edge in _edges(made):
        some = edge[draw.permutation(len(edge))[:ALONG]]
        chosen += [some, some + step * np.eye(made.ndim, dtype=np.int64)[d]]
    chosen.append(np.array([*np.ndindex(*(2,) * made.ndim)], np.int64) * (np.array(made.shape) - 1))
    return list(dict.fromkeys(tuple(map(int, c)) for found in chosen for c in found))


def all_edges_seen(made: Mask, found: Sequence[tuple[int, ...]]) -> bool:
    """Whether elements to look at lie at every edge of what is written, but for those at an end of the output."""
    seen = set(found)
    return all(not len(edge) or any(tuple(at) in seen for at in edge.tolist()) for _, _, edge in _edges(made))


def _edges(made: Mask) -> Iterator[tuple[int, int, Indices]]:
    """Along each dimension and either way: the elements that are written whose neighbour is not."""
    for d in range(made.ndim):
        for step in (1, -1):
            beside = np.roll(made, -step, d)  # what goes round is no neighbour
            np.moveaxis(beside, d, 0)[-1 if step == 1 else 0] = True
            yield d, step, np.argwhere(made & ~beside)


def untouched_cells(nodes: Ints, shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Of a run in part, elements within three of an edge that nobody wrote though the next ones inward are written."""
    full, found = nodes.reshape(shape), dict[tuple[int, ...], None]()
    draw = np.random.default_rng(3)
    for d, n in enumerate(shape):
        for step in (1, -1):
            lines = np.moveaxis(full, d, 0)[::step][:4]
            for depth in range(1, min(len(lines), 4)):
                here = np.argwhere((lines[depth] != 0) & ~(lines[:depth] != 0).any(0))
                for rest in here[draw.permutation(len(here))[:ALONG]]:
                    for k in range(depth):
                        at = [int(x) for x in rest]
                        at.insert(d, k if step == 1 else n - 1 - k)
                        found[tuple(at)] = None
    return list(found)


def written_cells(nodes: Ints, shape: Sequence[int], beneath: float) -> list[tuple[int, ...]]:
    """Of a run in part, elements to look at: of those that were written some near every edge and some within.
    ``beneath``: how many nodes an element has."""
    flat = np.flatnonzero(nodes)
    if not flat.size:
        return []
    most = int(np.clip(_PART_NODES / max(beneath, 1.0), 8, MOST_CELLS))
    draw = np.random.default_rng(0)
    at = np.stack(np.unravel_index(flat, shape)) if shape else np.zeros((0, 1), np.int64)
    chosen = list(draw.choice(flat.size, min(flat.size, most // 2), replace=False))
    edges = [d_at == e for d_at, n in zip(at, shape, strict=True) for e in (0, 1, n - 2, n - 1)]
    for edge in edges:
        near = np.flatnonzero(edge)
        if near.size:
            chosen += list(draw.choice(near, min(near.size, max(1, most // (2 * len(edges)))), replace=False))
    return [tuple(int(x) for x in at[:, n]) for n in dict.fromkeys(int(c) for c in chosen)]
