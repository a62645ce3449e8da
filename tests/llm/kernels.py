"""A view of a search over a small real kernel, for roles and proposers."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from fsr.features.schema import Bottleneck, Features
from fsr.records import Basis, Candidate, Outcome, Status, Timing
from fsr.runs.kernel import Kernel, load_kernel
from fsr.search.proposal import Proposal, Rules, Space, Trial
from fsr.search.proposers.protocol import View
from fsr.search.refinement import Refinement
from fsr.transform.registry import all_actions
from tests.commandline import ROW_SUM

CAUSES = (Bottleneck("uncoalesced", 0.7, "requests touch 32 sectors", 6, "sum += x[row * cols + j];"),)
WARP = """// launch: row_sum | ceil_div(rows,2) | 64 | 0 | x y rows cols
__global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int j = lane; j < cols; j += 32) sum += x[row * cols + j];
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane == 0) y[row] = sum;
}
"""


@cache
def row_sum() -> Kernel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cu")
        path.write_text(ROW_SUM)
        return load_kernel(path)


def timed(time_ns: float, causes: tuple[Bottleneck, ...] = CAUSES) -> Outcome:
    timing = Timing(Basis.PREDICTED, time_ns, (time_ns,))
    return Outcome(Status.CORRECT, "tests", 1, 1, timing, features=Features(bottlenecks=causes))


def search(*proposers: object) -> Refinement:
    """A search over row_sum whose original took 10 µs."""
    kernel = row_sum()
    refinement = Refinement(kernel.baseline, Space(Rules(kernel.contract), all_actions()), proposers)  # type: ignore[arg-type]
    first = refinement.ask()
    assert first is not None
    refinement.tell(first.id, timed(10_000.0))
    return refinement


def view_of(*trials: Trial) -> View:
    view = search().view()
    return View(
        view.baseline, view.space, (*view.elites, *trials), (*view.trials, *trials), 1 + len(trials), view.known
    )


def trial(number: int, candidate: Candidate, outcome: Outcome, proposer: str = "m", origin: str = "coder") -> Trial:
    return Trial(Proposal(number, candidate, str(number), 0, f"{origin}@{proposer}", origin, proposer), outcome)
