"""How much of a GPU a launch leaves without work."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.transform.protocol import Subject
from fsr.transform.sizes import largest_timed, timed_blocks
from fsr.transform.target import Target

_FULL = 2  # blocks a multiprocessor, from which on more of them change little


@dataclass(frozen=True)
class Room:
    """``grid``: blocks as timed, of ``threads``; ``blocks``: how many times as many are wanted; ``fill``: how many
    times as many threads fill half the GPU, which ``half`` is."""

    grid: int
    threads: int
    blocks: float
    fill: float
    half: int


def room_of(subject: Subject, target: Target) -> Room:
    """What a launch leaves at the timed sizes."""
    contract, gpu = target.contract, subject.gpu
    blocks = timed_blocks(contract, target.launch)
    threads = largest_timed(contract, " * ".join(f"({b})" for b in target.launch.block)) or 1
    half = gpu.sm_count * gpu.max_threads_per_sm // 2
    return Room(blocks, threads, _FULL * gpu.sm_count / max(blocks, 1), half / max(blocks * threads, 1), half)
