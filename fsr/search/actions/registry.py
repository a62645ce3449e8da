"""All actions there are, in the order in which their moves are listed. Explicit: an action is added here."""

from __future__ import annotations

from fsr.search.actions.atomics import PRIVATE_BINS, REDUCE_ATOMICS
from fsr.search.actions.block_shape import BlockShape, CoarsenRows, SwapIds
from fsr.search.actions.block_size import BlockSize
from fsr.search.actions.coarsen import Coarsen
from fsr.search.actions.grid_stride import GridStride
from fsr.search.actions.protocol import Action
from fsr.search.actions.rows import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.search.actions.tile_gemm import TileGemm
from fsr.search.actions.tile_transpose import TileTranspose
from fsr.search.actions.vectorize import Vectorize, VectorizeLoop

_STRUCTURAL: tuple[Action, ...] = (
    ROW_PER_WARP, ROW_PER_BLOCK, REDUCE_ATOMICS, PRIVATE_BINS, TileGemm(), TileTranspose(), SwapIds(), BlockShape(),
    CoarsenRows(),
)  # fmt: skip
_SIMPLE: tuple[Action, ...] = (Vectorize(), VectorizeLoop(), BlockSize(), Coarsen(), GridStride())


def all_actions() -> tuple[Action, ...]:
    """Every action, stateless and shared."""
    return (*_STRUCTURAL, *_SIMPLE)
