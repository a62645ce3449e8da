"""All actions there are, in the order in which their moves are listed. Explicit: an action is added here."""

from __future__ import annotations

from fsr.transform.all_kernels import OnAllKernels
from fsr.transform.atomics.action import PRIVATE_BINS, REDUCE_ATOMICS
from fsr.transform.atomics.bin_copies import SpreadBins
from fsr.transform.atomics.segments import SegmentAtomics
from fsr.transform.atomics.shared_atomics import SharedAtomics
from fsr.transform.axes.delinearize import Delinearize
from fsr.transform.computed.action import FROM_COMPUTATION
from fsr.transform.details.batched_loads import BatchLoads
from fsr.transform.details.compare_remainders import CompareRemainders
from fsr.transform.details.compiling import CompileFlags, LaunchBounds
from fsr.transform.details.early_exit import EarlyExit
from fsr.transform.details.fast_math import FastMath
from fsr.transform.details.fixed_values import FixedValues
from fsr.transform.details.float_literals import FloatLiterals
from fsr.transform.details.function_loops import UnrollFunctions
from fsr.transform.details.gathered_factors import GatherFactors
from fsr.transform.details.guarded_insertion import GuardInsertion
from fsr.transform.details.index32 import Index32
from fsr.transform.details.integer_powers import IntegerPowers
from fsr.transform.details.invariant_division import InvariantDivision
from fsr.transform.details.kept_reads import KeepReads
from fsr.transform.details.privatization import PrivatizeShared
from fsr.transform.details.promoted_atomics import SumsBeforeAtomics
from fsr.transform.details.qualifiers import CacheHint, Restrict
from fsr.transform.details.reciprocal import Reciprocal
from fsr.transform.details.register_promotion import RegisterPromotion
from fsr.transform.details.row_padding import RowPadding
from fsr.transform.details.scalar_replacement import ScalarReplacement
from fsr.transform.details.shared_locals import SharedLocals
from fsr.transform.details.shared_padding import SharedPadding
from fsr.transform.details.shared_tables import SharedTables
from fsr.transform.details.sines_with_cosines import SinesWithCosines
from fsr.transform.details.sorting_network import SortingNetwork
from fsr.transform.details.specialised_values import SpecialisedValues
from fsr.transform.details.strided_turns import StridedTurns
from fsr.transform.details.unroll import Unroll
from fsr.transform.details.value_tables import ValueTables
from fsr.transform.evaluated.action import PartialEvaluation
from fsr.transform.fewer.action import FewerBlocks
from fsr.transform.fuse.action import FuseLaunches
from fsr.transform.inlining.action import Inlining
from fsr.transform.jam.action import JamThreads
from fsr.transform.lanes.action import ShareLoop
from fsr.transform.launch.block_shape import BlockShape, CoarsenRows, SwapIds
from fsr.transform.launch.block_shape_3d import BlockShape3D
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.launch.coarsen import Coarsen
from fsr.transform.launch.deal_threads import DealThreads
from fsr.transform.launch.grid_stride import GridStride
from fsr.transform.launch.join_steps import JoinSteps
from fsr.transform.launch.merge_blocks import MergeBlocks
from fsr.transform.launch.merge_sharing import MergeSharingBlocks
from fsr.transform.launch.split_blocks import SplitBlocks
from fsr.transform.launch.split_outputs import SplitOutputs
from fsr.transform.launch.spread_loop import SpreadLoop
from fsr.transform.launch.steps_in_block import StepsInBlock
from fsr.transform.launch.tile_size import TileSize
from fsr.transform.launch.whole_blocks import WholeBlocks
from fsr.transform.march.action import SegmentMarch
from fsr.transform.one_launch import OneLaunch
from fsr.transform.plain.action import Restate
from fsr.transform.protocol import Action
from fsr.transform.recurrence.action import StepLaunches
from fsr.transform.rows.action import ROW_PER_BLOCK, ROW_PER_WARP
from fsr.transform.scratch.fold import FoldStorage
from fsr.transform.scratch.interleave import InterleaveScratch
from fsr.transform.sections.action import ShareSection
from fsr.transform.sections.warp_action import WarpSection
from fsr.transform.selects.action import SelectChains
from fsr.transform.slices.action import StageSlices
from fsr.transform.slices.stage_rows import StageRows
from fsr.transform.stencil.action import MarchStencil, TileStencil
from fsr.transform.stencil.interior import SplitInterior
from fsr.transform.swaps.action import SwapRows
from fsr.transform.tiles.action import TileThreads
from fsr.transform.trees.action import ShuffleTrees
from fsr.transform.turns.action import MoreBlocks
from fsr.transform.two_stage.action import TwoStageFold
from fsr.transform.vector.assume_aligned import AssumeAligned
from fsr.transform.vector.record import VectorizeRecord
from fsr.transform.vector.strided import VectorizeStrided
from fsr.transform.vector.vectorize import Vectorize, VectorizeLoop

# They deal work out to threads anew.
STRUCTURAL: tuple[Action, ...] = (
    ROW_PER_WARP, ROW_PER_BLOCK, REDUCE_ATOMICS, PRIVATE_BINS, SharedAtomics(), SpreadBins(), SegmentAtomics(),
    StepLaunches(), MarchStencil(), TileStencil(), SwapIds(), DealThreads(), Delinearize(), SpreadLoop(),
    SegmentMarch(), MoreBlocks(), TwoStageFold(), ShareLoop(), JoinSteps(), StepsInBlock(), FuseLaunches(),
    BlockShape(), CoarsenRows(), BlockShape3D(), TileSize(), WholeBlocks(), ShareSection(), WarpSection(),
    SplitOutputs(),
)  # fmt: skip
# They change one kernel's details.
DETAILS: tuple[Action, ...] = (
    Vectorize(), VectorizeLoop(), VectorizeStrided(), VectorizeRecord(), AssumeAligned(), BlockSize(),
    SplitBlocks(), MergeBlocks(), MergeSharingBlocks(), Coarsen(), JamThreads(), TileThreads(), GridStride(),
    FewerBlocks(), SplitInterior(), EarlyExit(), StridedTurns(), SwapRows(), GuardInsertion(), SharedTables(),
    ValueTables(), SharedLocals(), SelectChains(), PartialEvaluation(), SortingNetwork(), SharedPadding(),
    RowPadding(), ScalarReplacement(), PrivatizeShared(), RegisterPromotion(), SumsBeforeAtomics(), StageSlices(),
    StageRows(), InterleaveScratch(), FoldStorage(), KeepReads(), BatchLoads(), ShuffleTrees(), FastMath(),
    FixedValues(), SpecialisedValues(), FloatLiterals(), IntegerPowers(), SinesWithCosines(), CompareRemainders(),
    InvariantDivision(), Reciprocal(), GatherFactors(), Unroll(), UnrollFunctions(), Restrict(), CacheHint(),
    Index32(), LaunchBounds(), CompileFlags(),
)  # fmt: skip


def all_actions() -> tuple[Action, ...]:
    """Every action, stateless and shared."""
    anew = (*FROM_COMPUTATION, Restate(STRUCTURAL))
    structural, details = (tuple(map(Inlining, listed)) for listed in (STRUCTURAL, DETAILS))
    one_launch = OneLaunch(anew, structural, details)
    return (*map(OnAllKernels, structural), *anew, one_launch, *map(OnAllKernels, details))
