"""What is told to the compiler: launch bounds and flags. The code stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.assembly import registers_named
from fsr.records import Candidate
from fsr.transform.details.fast_math import may_round
from fsr.transform.plan import rewritten, with_flags
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import target_of, targets

MIN_BLOCKS = (0, 2, 4, 8)
_BESIDE = 8  # registers that a thread needs beside those that an assembly statement names
_MOST_REGISTERS = "--maxrregcount="
FLAGS = {  # name of the move's parameter: flags, and whether results may change in the last bits
    "vectorize": (("--extra-device-vectorization",), False),
    "l1-bypass": (("--ptxas-options=-dlcm=cg",), False),
    "regs-32": (("--maxrregcount=32",), False),
    "regs-64": (("--maxrregcount=64",), False),
    "flush": (("--ftz=true", "--prec-div=false", "--prec-sqrt=false"), True),
}


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """``__launch_bounds__`` with the block size of the plan, and optionally how many blocks are to fit."""

    name: str = "launch-bounds"
    aims_at: frozenset[str] = frozenset(["occupancy", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """Bounds that a multiprocessor can hold and that the kernel does not have yet."""
        for target in targets(subject):
            threads = target.threads
            if threads is None or len(target.kernel.launch_bounds) > 1:
                continue
            for blocks in MIN_BLOCKS:
                bounds, resident = _bounds(threads, blocks), threads * max(blocks, 1)
                if bounds == target.kernel.launch_bounds or resident > subject.gpu.max_threads_per_sm:
                    continue
                if _suffice(subject, subject.gpu.registers_per_sm // resident):
                    yield Move(self.name, target.region, (("threads", threads), ("blocks", blocks)), 1.02)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the bounds."""
        target = target_of(subject, move)
        bounds = _bounds(int(move.param("threads")), int(move.param("blocks")))
        return rewritten(target, move, replace(target.kernel, launch_bounds=bounds))


def _bounds(threads: int, blocks: int) -> tuple[str, ...]:
    return (str(threads), str(blocks)) if blocks else (str(threads),)


def _suffice(subject: Subject, registers: int) -> bool:
    """Whether a thread's registers hold what assembly names: the assembler gives up where they do not."""
    return registers >= registers_named(subject.candidate.source) + _BESIDE


@dataclass(frozen=True, slots=True)
class CompileFlags:
    """Compiler flags of the whole plan; those that change rounding only where the contract is not exact."""

    name: str = "compile-flags"
    aims_at: frozenset[str] = frozenset(["compute", "instructions", "occupancy"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The sets of flags that the plan does not carry yet."""
        present = set(subject.candidate.plan.flags)
        steady = subject.contract.tolerance.exact or not may_round(subject.candidate.source)
        for which, (flags, rounds) in FLAGS.items():
            allowed = [int(f.removeprefix(_MOST_REGISTERS)) for f in flags if f.startswith(_MOST_REGISTERS)]
            if not all(_suffice(subject, most) for most in allowed):
                continue
            if not (rounds and steady) and not set(flags) <= present:
                yield Move(self.name, "plan", (("set", which),), 1.01)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with the flags."""
        candidate = subject.candidate
        plan = with_flags(candidate.plan, FLAGS[str(move.param("set"))][0])
        return replace(candidate, plan=plan, actions=(*candidate.actions, move.name))
