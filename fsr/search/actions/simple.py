"""The actions on one kernel's details, in the order in which their moves are listed."""

from __future__ import annotations

from fsr.search.actions.block_size import BlockSize
from fsr.search.actions.coarsen import Coarsen
from fsr.search.actions.compiling import CompileFlags, LaunchBounds
from fsr.search.actions.fast_math import FastMath, Reciprocal
from fsr.search.actions.grid_stride import GridStride
from fsr.search.actions.index32 import Index32
from fsr.search.actions.protocol import Action
from fsr.search.actions.qualifiers import CacheHint, Restrict
from fsr.search.actions.shared_padding import SharedPadding
from fsr.search.actions.unroll import Unroll
from fsr.search.actions.vectorize import Vectorize, VectorizeLoop
from fsr.search.actions.vectorize_strided import VectorizeStrided

SIMPLE: tuple[Action, ...] = (
    Vectorize(), VectorizeLoop(), VectorizeStrided(), BlockSize(), Coarsen(), GridStride(), SharedPadding(),
    FastMath(), Reciprocal(), Unroll(), Restrict(), CacheHint(), Index32(), LaunchBounds(), CompileFlags(),
)  # fmt: skip
