"""Every action there is, by explicit import: what is not listed here is never tried."""

from __future__ import annotations

from functools import lru_cache

from fsr.search.actions.block_size import BlockSize
from fsr.search.actions.coarsen import Coarsen
from fsr.search.actions.grid_stride import GridStride
from fsr.search.actions.protocol import Action
from fsr.search.actions.rows import ROW_ACTIONS
from fsr.search.actions.vectorize import Vectorize, VectorizeLoop


@lru_cache(maxsize=1)
def all_actions() -> tuple[Action, ...]:
    """The actions in the order in which untried moves of equal gain are tried."""
    return (*ROW_ACTIONS, Vectorize(), VectorizeLoop(), BlockSize(), Coarsen(), GridStride())
