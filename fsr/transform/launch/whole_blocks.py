"""whole-blocks: blocks of a fixed number of threads where a launch has fewer for small sizes only.

``threads = n < 256 ? n : 256`` spares a guard, and hides from everything else how many threads a block has. With as
many at every size, those that there were not before leave at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate_int
from fsr.hardware.limits import MAX_THREADS
from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.entry import function_name
from fsr.source.form import Binary, KernelForm, Member, Name, OpaqueStmt, Param
from fsr.source.rewrite import replace_kernel
from fsr.source.walk import fresh, nodes
from fsr.transform.launch.cooperation import cooperates
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import always, largest
from fsr.transform.target import Target

_GAIN = 1.15  # of what may follow: by itself it gains nothing
_BLOCK, _WIDTH = Member(Name("blockIdx"), "x"), Member(Name("blockDim"), "x")


@dataclass(frozen=True)
class WholeBlocks:
    """All launches of a kernel at once."""

    name: str = "whole-blocks"
    aims_at: frozenset[str] = frozenset(["occupancy", "latency", "launch", "bandwidth", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Kernels all of whose launches have such blocks, and whose threads are alone."""
        for kernel in () if subject.keep_launch else subject.kernels.values():
            if _threads(subject, kernel) is not None:
                yield Move(self.name, f"kernel:{kernel.name}", (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with whole blocks."""
        kernel = subject.kernels[move.region.removeprefix("kernel:")]
        old, threads = subject.candidate, _threads(subject, kernel)
        assert threads is not None
        bound = fresh("threads_of_all", Target(kernel, 0, old, subject.contract, "kernel").names)
        guard = OpaqueStmt(f"if ((long long)blockIdx.x * blockDim.x + threadIdx.x >= {bound}) return;")
        form = replace(kernel, params=(*kernel.params, Param("long long", bound)), body=(guard, *kernel.body))
        launches = tuple(_whole(x, threads) if function_name(x.entry) == kernel.name else x for x in old.plan.launches)
        source = replace_kernel(old.source, kernel, form)
        return replace(old, source=source, plan=replace(old.plan, launches=launches), actions=(*old.actions, move.name))


def _whole(launch: Launch, threads: int) -> Launch:
    in_all = ScalarArgument("int64", f"({launch.grid[0]}) * ({launch.block[0]})")
    return replace(launch, block=(str(threads), "1", "1"), args=(*launch.args, in_all))


def _threads(subject: Subject, kernel: KernelForm) -> int | None:
    """How many threads the kernel's blocks have but where there is one block; None where that is not so."""
    launches = subject.candidate.plan.launches
    own = [i for i, x in enumerate(launches) if function_name(x.entry) == kernel.name]
    found = {_most(subject.contract, launches[i]) for i in own}
    if kernel.span is None or len(found) != 1 or not _numbers_threads(kernel):
        return None
    if any(cooperates(Target(kernel, i, subject.candidate, subject.contract, "kernel")) for i in own):
        return None
    return found.pop()


def _most(contract: Contract, launch: Launch) -> int | None:
    """The threads of a block at large sizes, of a launch along one axis with fewer for one block alone."""
    grid, block = launch.grid[0], launch.block[0]
    if block.strip().isdigit() or {*launch.grid[1:], *launch.block[1:]} != {"1"}:
        return None
    most = largest(contract, block)
    if most is None or not 1 < most <= MAX_THREADS:
        return None
    if not always(contract, f"(({block}) == {most}) + (({grid}) == 1) > 0"):
        return None
    try:
        timed = all(evaluate_int(block, sizes) == most for sizes in contract.timed_sizes())
    except ContractError:
        return None
    return most if timed else None


def _numbers_threads(kernel: KernelForm) -> bool:
    """Whether extents are used for nothing but a thread's number: ``blockIdx.x * blockDim.x``."""
    every = list(nodes(kernel.body))
    products = sum(isinstance(e, Binary) and e.op == "*" and {e.left, e.right} == {_BLOCK, _WIDTH} for e in every)
    widths = sum(isinstance(e, Name) and e.text == "blockDim" for e in every)
    grids = any(isinstance(e, Name) and e.text == "gridDim" for e in every)
    return not grids and widths == products
