"""The side of the kernels: the original, the winner and other candidates of one contract on a device with a clock."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from fsr.app.checking import load_candidate
from fsr.backends.protocol import Array, DeviceFault, TimedPrepared, can_time
from fsr.backends.select import backend_named, parse_device
from fsr.bench import exchange
from fsr.bench.agreement import disagreement
from fsr.errors import FsrError, UsageError
from fsr.evaluation.ceilings import ceilings_of
from fsr.evaluation.clock import placed
from fsr.evaluation.compiling import build
from fsr.evaluation.qualify import must_move
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.expressions import evaluate_int
from fsr.identity import to_json
from fsr.records import Json, Plan, Role
from fsr.runs.kernel import load_kernel

NAIVE = "naive"
SETS = 3


@dataclass(frozen=True, slots=True)
class KernelsAsked:
    """``candidates``: name to file, beside the original. device: 'cuda:N'. folder: where inputs and outputs of the
    first input set go for peers; None without peers."""

    kernel: Path
    candidates: Mapping[str, Path]
    device: str
    seed: int = 0
    folder: Path | None = None


class Kernels:
    """Every contender on every input set, in memory of its own; candidates that cannot be there are told in the facts.
    Raises FsrError, DeviceFault."""

    def __init__(self, asked: KernelsAsked) -> None:
        kernel = load_kernel(asked.kernel)
        spec = SessionSpec(
            kernel.contract, kernel.baseline, asked.device, _target(asked.device), asked.seed, str(kernel.folder)
        )
        self._asked, self._session, self._stack = asked, Session(spec), ExitStack()
        if not can_time(self._session.device):
            raise UsageError(f"{asked.device} has no clock", expected="a GPU", where="--device")
        case, _ = self._session.timed()[0]
        self._sets = [(c, d) for c, d in self._session.timed(sets=SETS) if c.sizes == case.sizes]
        self._failures: dict[str, str] = {}
        self._placed = {NAIVE: self._sets_of(self._session.baseline, kernel.baseline.plan)}
        for name, path in asked.candidates.items():
            try:
                candidate = load_candidate(path, kernel)
                built = build(spec, candidate)
                if isinstance(built, Binaries):
                    self._placed[name] = self._sets_of(built, candidate.plan)
                else:
                    self._failures[name] = f"it does not compile: {built}"
            except (FsrError, DeviceFault) as fault:
                self._failures[name] = str(fault)
                if isinstance(fault, DeviceFault) and fault.fatal:
                    raise

    def _sets_of(self, binaries: Binaries, plan: Plan) -> list[TimedPrepared]:
        return [placed(self._session, self._stack, binaries, plan, case, data) for case, data in self._sets]

    def facts(self) -> dict[str, Json]:
        """The device and its ceilings, sizes and scalars, what must move, how far outputs of the contenders are from
        the original's; with a folder, also writes inputs and outputs there."""
        session, contract = self._session, self._session.contract
        case, data = self._sets[0]
        read = {a.name for a in contract.buffers() if a.role is not Role.OUT}
        given = {n: array for n, array in self._placed[NAIVE][0].read().items() if n in read}
        answers = {name: self._answer(name) for name in self._placed}
        terms = max(1, evaluate_int(contract.tolerance.sum_length or "1", case.size_map()))
        dtypes = {a.name: a.dtype for a in contract.buffers()}
        if self._asked.folder is not None:
            exchange.put(self._asked.folder / "given", given, dtypes)
            exchange.put(self._asked.folder / "answered", answers[NAIVE], dtypes)
        ceilings, moved = ceilings_of(session), must_move(session)
        return {
            "device": to_json(session.device.info),
            "sizes": dict(case.sizes),
            "scalars": {name: value.value for name, value in data.scalars.items()},
            "roles": {a.name: a.role.name for a in contract.buffers()},
            "dtypes": dict(dtypes),
            "failures": dict(self._failures),
            "terms": terms,
            "bytes": None if moved is None else moved.total_bytes,
            "copy_bytes_per_s": None if ceilings is None else ceilings.copy_bytes_per_s,
            "flops_per_s": None if ceilings is None else 2 * (ceilings.instructions_per_s or 0.0) or None,
            "l2_bytes": session.device.info.l2_bytes,
            "apart": {
                name: {k: disagreement(answer[k], answers[NAIVE][k], terms) for k in answer}
                for name, answer in answers.items()
                if name != NAIVE
            },
        }

    def _answer(self, name: str) -> dict[str, Array]:
        contract, prepared = self._session.contract, self._placed[name][0]
        prepared.reset()
        prepared.run(60.0)
        found = prepared.read()
        prepared.reset()
        return {a.name: found[a.name] for a in contract.buffers() if a.role is not Role.IN}

    def sample(self, number: int) -> dict[str, float]:
        """One run of every contender on input set ``number`` of them in turn, nanoseconds; the order turns too."""
        names = list(self._placed)
        first = number % len(names)
        return {n: self._placed[n][number % len(self._sets)].time_ns() for n in names[first:] + names[:first]}

    def close(self) -> None:
        """Free everything."""
        self._stack.close()
        self._session.close()


def _target(device: str) -> str:
    backend, spec = backend_named(device), parse_device(device)
    gpus = backend.gpus()
    return gpus[spec.index].arch if gpus else ""
