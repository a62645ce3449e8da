"""The comparison of one workload: its sides opened, then timed in rounds, one run of every contender in each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fsr.bench.agreement import agrees
from fsr.bench.kernels import KernelsAsked
from fsr.bench.sides import ProcessSide, Side, SideFailureError
from fsr.bench.suite import Workload
from fsr.bench.torch_peers import AUTOTUNED, COMPILED, EAGER, LIBRARY, TorchAsked
from fsr.bench.tuner import TunerAsked
from fsr.errors import FsrError
from fsr.records import Json

ROUNDS, LEAST_ROUNDS = 21, 6
OPEN_S, SAMPLE_S = 300.0, 120.0
PREPARE_S = {EAGER: 120.0, LIBRARY: 120.0, COMPILED: 240.0, AUTOTUNED: 420.0}
TUNED = "kernel-tuner"
PEERS: dict[str, tuple[str, ...]] = {
    TUNED: (),
    "torch": (EAGER, LIBRARY),
    "compile": (COMPILED, AUTOTUNED),
    "compile-default": (COMPILED,),
}
Opener = Callable[[str, Any, Path], Side]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``medians``: contender to nanoseconds, over ``rounds`` rounds; ``quartiles``: the middle half of its samples.
    ``failures``: contender to why it has no time, or one of the rounds before it was lost only. ``facts``: as the
    kernels' side tells them. ``apart``: contender to output to how far it is from the original's."""

    medians: Mapping[str, float]
    quartiles: Mapping[str, tuple[float, float]]
    failures: Mapping[str, str]
    facts: Mapping[str, Any]
    apart: Mapping[str, Any]
    rounds: int


@dataclass
class Arena:
    """Where comparisons take place. ``scratch``: a folder for arrays on their way, emptied after each; ``log``: one
    for what the sides print. ``budget_s``: after so long no round is begun, once there are a few. ``tuning_s``: for
    Kernel Tuner."""

    device: str
    scratch: Path
    log: Path
    peers: tuple[str, ...] = ()
    seed: int = 0
    rounds: int = ROUNDS
    budget_s: float = 30.0
    tuning_s: float = 60.0
    opener: Opener = field(default=ProcessSide)
    tell: Tell = field(default=lambda _: None)

    def compare(self, workload: Workload, candidates: Mapping[str, Path]) -> Comparison:
        """Original, candidates and peers of a workload, side by side. Raises FsrError and SideFailureError where the
        kernels themselves cannot be timed; a peer that fails is told in the failures."""
        folder = self.scratch / workload.name
        named = dict.fromkeys(peer for name in self.peers for peer in PEERS[name])
        wanted = [peer for peer in named if peer != LIBRARY or workload.library]
        log = self.log / f"{workload.name}.log"
        failures: dict[str, str] = {}
        candidates = {**candidates, **self._tuned(workload, log, failures)}
        asked = KernelsAsked(workload.kernel, candidates, self.device, self.seed, folder if wanted else None)
        self.tell("preparing the kernels")
        kernels = self.opener("fsr.bench.kernels:Kernels", asked, log)
        torch: _Torch | None = None
        try:
            facts = kernels.ask("facts", limit_s=OPEN_S)
            failures |= facts.pop("failures")
            if wanted and workload.references is not None:
                torch = _Torch(self, _torch_asked(workload, facts, folder, self.device), log)
                torch.prepare(wanted, failures)
            elif wanted:
                failures |= dict.fromkeys(wanted, "no reference in torch is written for it")
            samples = self._rounds(kernels, torch, failures)
            apart = {**facts.pop("apart"), **(torch.apart if torch is not None else {})}
            facts["versions"] = torch.versions if torch is not None else {}
        finally:
            kernels.close()
            if torch is not None:
                torch.close()
            shutil.rmtree(folder, ignore_errors=True)
        return _compared(samples, failures, facts, apart)

    def _tuned(self, workload: Workload, log: Path, failures: dict[str, str]) -> dict[str, Path]:
        """The candidate that Kernel Tuner finds in the workload's space, given as long as a refinement."""
        if TUNED not in self.peers or workload.space is None:
            return {}
        self.tell("tuning with Kernel Tuner")
        output = self.log / f"{workload.name}.tuned.cu"
        asked = TunerAsked(workload.kernel, workload.space, self.device, self.tuning_s, self.seed, output)
        side = self.opener("fsr.bench.tuner:Tuner", asked, log)
        try:
            side.ask("tune", limit_s=self.tuning_s + OPEN_S)
        except (SideFailureError, FsrError) as fault:
            failures[TUNED] = fault.what if isinstance(fault, FsrError) else str(fault)
            return {}
        finally:
            side.close()
        return {TUNED: output}

    def _rounds(self, kernels: Side, torch: _Torch | None, failures: dict[str, str]) -> dict[str, list[float]]:
        samples: dict[str, list[float]] = {}
        began = time.monotonic()
        for number in range(self.rounds + 1):
            if len(samples) and number > LEAST_ROUNDS and time.monotonic() - began > self.budget_s:
                break
            self.tell(f"round {number} of {self.rounds}")
            found: dict[str, float] = kernels.ask("sample", number, limit_s=SAMPLE_S)
            if torch is not None:
                found |= torch.sample(number, failures)
            if number:  # the first round warms up
                for name, time_ns in found.items():
                    samples.setdefault(name, []).append(time_ns)
        return samples


class _Torch:
    """The torch side; one that is lost with a peer is opened again for those that were well."""

    def __init__(self, arena: Arena, asked: TorchAsked, log: Path) -> None:
        self._arena, self._asked, self._log = arena, asked, log
        self._side: Side | None = None
        self._ready: list[str] = []
        self.apart: dict[str, Json] = {}
        self.versions: dict[str, Json] = {}

    def prepare(self, peers: list[str], failures: dict[str, str]) -> None:
        """Open the side and prepare the peers; those that fail are told in ``failures``."""
        for number, peer in enumerate(peers):
            self._arena.tell(f"preparing {peer}")
            try:
                self._again()
                told = self._ask("prepare", peer, limit_s=PREPARE_S[peer])
            except FsrError as fault:
                failures |= dict.fromkeys(peers[number:], fault.what)
                return
            except SideFailureError as fault:
                failures[peer] = str(fault)
                self._drop()  # after a fault of the GPU nothing in that process can be trusted
                continue
            self.apart[peer] = told["apart"]
            if told["agrees"]:
                self._ready.append(peer)
            else:
                failures[peer] = f"it answers something else: {told['apart']}"

    def _again(self) -> None:
        if self._side is None:
            self._side = self._arena.opener("fsr.bench.torch_peers:TorchPeers", self._asked, self._log)
            self.versions = self._ask("versions", limit_s=OPEN_S)
            for peer in self._ready:
                self._ask("prepare", peer, limit_s=PREPARE_S[peer])

    def _ask(self, method: str, *arguments: Any, limit_s: float) -> Any:
        assert self._side is not None
        return self._side.ask(method, *arguments, limit_s=limit_s)

    def sample(self, number: int, failures: dict[str, str]) -> dict[str, float]:
        """One run of every peer that is ready; none any more once that failed."""
        if not self._ready:
            return {}
        try:
            self._again()
            found: dict[str, float] = self._ask("sample", number, limit_s=SAMPLE_S)
            return found
        except (SideFailureError, FsrError) as fault:
            failures |= dict.fromkeys(self._ready, f"while it was timed: {fault}")
            self._ready = []
            return {}

    def _drop(self) -> None:
        if self._side is not None:
            self._side.close()
        self._side = None

    def close(self) -> None:
        """End the side."""
        self._drop()


def _torch_asked(workload: Workload, facts: Mapping[str, Any], folder: Path, device: str) -> TorchAsked:
    assert workload.references is not None
    roles = facts["roles"]
    return TorchAsked(
        workload.references, workload.name, folder, device, [n for n, role in roles.items() if role != "IN"],
        [n for n, role in roles.items() if role == "INOUT"], facts["scalars"], facts["sizes"], facts["l2_bytes"] or 0,
        facts["terms"],
    )  # fmt: skip


def _compared(
    samples: Mapping[str, list[float]], failures: Mapping[str, str], facts: Mapping[str, Any], apart: Mapping[str, Any]
) -> Comparison:
    wrong = {
        name: f"its answer at the timed sizes is not the original's: {outputs}"
        for name, outputs in apart.items()
        if not all(agrees(share, facts["dtypes"][output]) for output, share in outputs.items())
    }
    lost = {name for name in failures if len(samples.get(name, ())) < LEAST_ROUNDS}
    right = {name: times for name, times in samples.items() if name not in wrong.keys() | lost}
    quartiles = {name: tuple(map(float, np.percentile(times, [25, 75]))) for name, times in right.items()}
    return Comparison(
        {name: float(np.median(times)) for name, times in right.items()},
        {name: (low, high) for name, (low, high) in quartiles.items()},
        {**wrong, **failures}, facts, apart, max(map(len, samples.values()), default=0),
    )  # fmt: skip
