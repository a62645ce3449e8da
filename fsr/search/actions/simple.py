"""The actions on one kernel's details, in the order in which their moves are listed."""

from __future__ import annotations

from fsr.search.actions.block_size import BlockSize
from fsr.search.actions.coarsen import Coarsen
from fsr.search.actions.grid_stride import GridStride
from fsr.search.actions.protocol import Action
from fsr.search.actions.vectorize import Vectorize, VectorizeLoop

SIMPLE: tuple[Action, ...] = (Vectorize(), VectorizeLoop(), BlockSize(), Coarsen(), GridStride())
