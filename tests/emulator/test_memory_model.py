"""Litmus kernels against the memory model: what the PTX ISA and CUDA's guide say of each stands beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import open_host_device
from fsr.backends.protocol import Buffer
from fsr.evaluation.orders import ORDERS
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role

FOLDER = Path(__file__).parent / "litmus"
ONE = ("1", "1", "1")
_HEAD = re.compile(r"^// litmus: (\w+) (\d+)x(\d+) (fine|wrong) out=([\d,]+) \| (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Litmus:
    file: str
    name: str
    grid: int
    block: int
    verdict: str
    out: tuple[int, ...]


def corpus() -> list[Litmus]:
    found = []
    for path in sorted(FOLDER.glob("*.cu")):
        for name, grid, block, verdict, out, _ in _HEAD.findall(path.read_text()):
            values = tuple(int(word) for word in out.split(","))
            found.append(Litmus(path.name, name, int(grid), int(block), verdict, values))
    return found


@cache
def image_of(file: str) -> Image:
    entries = [one.name for one in corpus() if one.file == file]
    plan = Plan(tuple(Launch(entry, ONE, ONE, "0", ()) for entry in entries))
    image = HostToolchain(watched=True).compile(Candidate((FOLDER / file).read_text(), plan))
    assert isinstance(image, Image), image
    return image


@pytest.fixture(scope="module")
def device():
    opened = open_host_device()
    yield opened
    opened.close()


def observed(device, one: Litmus) -> list[str]:
    """What some order of blocks and threads shows to be wrong."""
    wrong = []
    for order in ORDERS:
        buffers = [
            Buffer("data", np.zeros(1024, "i4"), None, zeroed=True),
            Buffer("flag", np.zeros(64, "i4"), None, zeroed=True),
            Buffer("out", np.zeros(1024, "i4"), Role.INOUT),
        ]
        launch = ConcreteLaunch(one.name, (one.grid, 1, 1), (one.block, 1, 1), 0, ("data", "flag", "out"))
        faults, arrays = device.watch(image_of(one.file), [launch], buffers, cooperative(order), 20.0)
        wrong += [f"{fault.kind}: {fault.detail}" for fault in faults]
        if tuple(arrays["out"][: len(one.out)]) != one.out:
            wrong.append(f"out is {arrays['out'][: len(one.out)]}")
    return wrong


def cooperative(order):
    from dataclasses import replace

    return replace(order, cooperative=1)


def test_there_are_enough_kernels_of_both_kinds():
    verdicts = [one.verdict for one in corpus()]
    assert len(verdicts) >= 80
    assert min(verdicts.count("fine"), verdicts.count("wrong")) >= 30


@pytest.mark.parametrize("one", corpus(), ids=lambda one: one.name)
def test_the_verdict_is_that_of_the_memory_model(device, one):
    wrong = observed(device, one)
    assert bool(wrong) == (one.verdict == "wrong"), wrong


def test_blocks_of_earlier_launches_do_not_meet_at_the_barrier_of_a_grid(device):
    synced = next(one for one in corpus() if one.name == "wait_grid_sync")
    larger = [one for one in corpus() if one.file == synced.file and one.grid > synced.grid]
    assert larger
    for earlier in larger:
        observed(device, earlier)  # leaves more blocks behind than the next grid has
        assert not observed(device, synced)
