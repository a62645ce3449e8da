"""One global atomic an element becomes one a block: sums in registers, histograms in shared memory.

Atomics to one address are served one after another by the L2 cache, about one a clock for the whole GPU; gathered
by a block first, there are a few hundred instead of one an element, and reading the input is what remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.hardware.limits import PARTIAL_SUMS_BYTES
from fsr.records import Candidate, Launch
from fsr.source.form import KernelForm
from fsr.source.rewrite import replace_kernel
from fsr.transform.atomics.element_kernel import ElementKernel, element_kernel
from fsr.transform.atomics.element_loop import ElementLoop, wide_loads
from fsr.transform.atomics.gather import BIN_BYTES, Gathering
from fsr.transform.atomics.global_atomics import Bins, Target, bins_of, targets
from fsr.transform.atomics.second_pass import with_second_pass
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import with_launch
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT, largest

# threads, blocks a multiprocessor, elements a load, loads under way
REDUCE_SHAPES = (
    (256, 8, 4, 4), (256, 8, 4, 2), (512, 4, 4, 4), (1024, 2, 4, 2), (1024, 2, 4, 4), (512, 4, 4, 2), (256, 4, 4, 4),
    (256, 8, 4, 1), (256, 8, 1, 4), (256, 8, 1, 1), (128, 16, 4, 2),
)  # fmt: skip
# Every block adds its bins to the global ones, so fewer and larger blocks than for a sum.
BIN_SHAPES = (
    (1024, 2, 4, 2), (1024, 2, 4, 4), (512, 4, 4, 4), (512, 4, 4, 2), (1024, 1, 4, 4), (256, 8, 4, 4), (256, 4, 4, 2),
    (1024, 2, 1, 4), (256, 8, 1, 1),
)  # fmt: skip
COPIES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Found:
    """A kernel whose atomics can be gathered: those to fixed addresses, and one scattered over bins, if any."""

    kernel: ElementKernel
    fixed: tuple[Target, ...]
    scattered: Target | None
    bins: Bins | None


def find(subject: Subject, form: KernelForm) -> Found | None:
    """The kernel's atomics, or None where it has none that can be gathered."""
    kernel = element_kernel(subject, form)
    wanted = targets(kernel) if kernel is not None else None
    if kernel is None or not wanted or kernel.target.launch.shared_bytes != "0":
        return None
    last = largest(subject.contract, kernel.count)
    most = 2**30 if subject.keep_launch else INT_LIMIT - 2**24  # the step past the end must not wrap
    if last is None or (kernel.type in ("int", "unsigned", "unsigned int") and last > most):
        return None
    fixed = tuple(t for t in wanted.values() if t.fixed)
    room = subject.gpu.max_shared_bytes - PARTIAL_SUMS_BYTES
    for target in wanted.values():
        bins = None if target.fixed else bins_of(target, kernel, subject.contract)
        if bins is not None and bins.room <= room:
            return Found(kernel, fixed, target, bins)
    return Found(kernel, fixed, None, None) if fixed else None


def shapes_of(
    found: Found, shapes: tuple[tuple[int, int, int, int], ...], keep_launch: bool
) -> Iterator[list[tuple[str, int]]]:
    """The shapes of the element loop that make sense for a kernel, as parameters of a move."""
    seen = set()
    widest = next((w for w in (4, 2, 1) if w == 1 or wide_loads(found.kernel, w)), 1)
    threads_now = found.kernel.threads
    for threads, blocks, width, batch in shapes:
        shape = (threads, blocks, min(width, widest), batch)
        if keep_launch:
            if threads_now % 32 or not 32 <= threads_now <= 1024:
                return
            shape = (threads_now, 0, 1, 1)
        if shape not in seen:
            seen.add(shape)
            yield [("threads", shape[0]), ("blocks", shape[1]), ("width", shape[2]), ("batch", shape[3])]


@dataclass(frozen=True, slots=True)
class ReduceAtomics:
    """Atomics to a fixed address: folded a thread, a warp, a block; then one atomic a block, or a second pass."""

    name: str = "reduce-atomics"
    aims_at: frozenset[str] = frozenset(["atomics", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Shapes of the loop, finished by atomics; and the first two of them by a second pass."""
        for form in subject.kernels.values():
            found = find(subject, form)
            if found is None or not found.fixed or found.scattered is not None:
                continue
            for rank, shape in enumerate(shapes_of(found, REDUCE_SHAPES, subject.keep_launch)):
                gain = 40.0 - rank
                yield Move(self.name, form.name, (*shape, ("finish", "atomic")), gain)
                if rank < 2 and not subject.keep_launch:
                    yield Move(self.name, form.name, (*shape, ("finish", "second-pass")), gain * 0.6)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the kernel's fixed atomics gathered."""
        found = find(subject, subject.kernels[move.region])
        assert found is not None
        second = move.param("finish") == "second-pass"
        gathering = Gathering(_loop(found, move), found.fixed, None, None, 0, second)
        candidate = _rebuilt(subject, found, gathering, move)
        return with_second_pass(candidate, found.kernel, gathering) if second else candidate


@dataclass(frozen=True, slots=True)
class PrivateBins:
    """Atomics scattered over few bins: a copy of the bins a block in shared memory, added to the global ones once."""

    name: str = "private-bins"
    aims_at: frozenset[str] = frozenset(["atomics", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Shapes of the loop times copies of the bins (more copies: fewer threads meet on one address)."""
        for form in subject.kernels.values():
            found = find(subject, form)
            if found is None or found.scattered is None or (subject.keep_launch and found.kernel.threads % 32):
                continue
            for rank, shape in enumerate(shapes_of(found, BIN_SHAPES, subject.keep_launch)):
                for copies in COPIES if found.bins is not None and found.bins.room <= BIN_BYTES else COPIES[:1]:
                    if copies * 32 <= dict(shape)["threads"]:
                        gain = 12.0 - 0.5 * rank - 0.3 * abs(copies - 4)
                        yield Move(self.name, form.name, (*shape, ("copies", copies)), gain)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the kernel's bins private to each block."""
        found = find(subject, subject.kernels[move.region])
        assert found is not None
        copies = int(move.param("copies"))
        gathering = Gathering(_loop(found, move), found.fixed, found.scattered, found.bins, copies, False)
        return _rebuilt(subject, found, gathering, move)


def _loop(found: Found, move: Move) -> ElementLoop:
    threads, width, batch = (int(move.param(k)) for k in ("threads", "width", "batch"))
    return ElementLoop(found.kernel, threads, width, batch, wide_loads(found.kernel, width))


def _rebuilt(subject: Subject, found: Found, gathering: Gathering, move: Move) -> Candidate:
    candidate, kernel = subject.candidate, found.kernel
    restrict = not kernel.target.aliasing
    form = kernel.target.kernel
    params = tuple(replace(p, restrict=p.restrict or (restrict and p.is_pointer)) for p in gathering.params())
    new = replace(form, params=params, body=gathering.body())
    if not subject.keep_launch:
        new = replace(new, launch_bounds=(str(gathering.loop.threads),))
    helpers = missing_helpers(candidate.source, gathering.helpers())
    source = replace_kernel(candidate.source, form, new, helpers)
    threads, blocks = gathering.loop.threads, int(move.param("blocks"))
    a_block = threads * int(move.param("width")) * int(move.param("batch"))
    grid = kernel.target.launch.grid[0]
    if not subject.keep_launch:
        # A few blocks each keep all multiprocessors busy, and each block costs one atomic.
        grid = f"min(ceil_div({kernel.count}, {a_block}), {subject.gpu.sm_count * blocks})"

    def change(launch: Launch) -> Launch:
        return replace(
            launch, grid=(grid, "1", "1"), block=(str(threads), "1", "1"), shared_bytes=gathering.shared_bytes()
        )

    plan = with_launch(candidate.plan, kernel.target.position, change)
    return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, move.name))


REDUCE_ATOMICS = ReduceAtomics()
PRIVATE_BINS = PrivateBins()
