"""The actions that deal points out to threads anew, in the order in which they are tried."""

from __future__ import annotations

from fsr.search.actions.block_shape import BlockShape, CoarsenRows, SwapIds
from fsr.search.actions.block_shape_3d import BlockShape3D
from fsr.search.actions.protocol import Action
from fsr.search.actions.tile_gemm import TileGemm
from fsr.search.actions.tile_stencil import MarchStencil, TileStencil
from fsr.search.actions.tile_transpose import TileTranspose

STRUCTURAL_ACTIONS: tuple[Action, ...] = (
    TileGemm(), TileTranspose(), MarchStencil(), TileStencil(), SwapIds(), BlockShape(), CoarsenRows(), BlockShape3D(),
)  # fmt: skip
