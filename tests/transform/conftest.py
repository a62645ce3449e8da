"""What tests of actions share: kernels from text, moves by name, and runs on the host device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.protocol import Array, Buffer
from fsr.contract.load import load_contract
from fsr.contract.model import Contract, concrete_launches
from fsr.expressions import evaluate, evaluate_int
from fsr.records import Candidate, Image, Role, ScalarValue
from fsr.source.file import KernelFile
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Action, Subject


def subject_of(text: str, **options: object) -> Subject:
    """The subject of a kernel text with a contract block."""
    file = KernelFile.from_text(text)
    contract = load_contract(file)
    entries = dict.fromkeys((contract.entry, *(launch.entry for launch in contract.plan.launches)))
    candidate = Candidate(file.cut(*entries).text, contract.plan)
    return replace(Subject(candidate, parse_kernels(candidate.source), contract), **options)


class Runner:
    """Runs candidates on the host device, each compiled once. ``level``: how far, '-O1' or '-O2'."""

    def __init__(self, device: HostDevice, level: str = "-O2") -> None:
        self.device, self.images = device, dict[Candidate, Image]()
        self.toolchain = HostToolchain(level=level)

    def image(self, candidate: Candidate) -> Image:
        """The compiled candidate; the test fails with the compiler's words when it does not compile."""
        if candidate not in self.images:
            built = self.toolchain.compile(candidate)
            assert isinstance(built, Image), f"{built.log}\n{candidate.source}"
            self.images[candidate] = built
        return self.images[candidate]

    def outputs(
        self,
        candidate: Candidate,
        contract: Contract,
        sizes: Mapping[str, int],
        seed: int = 1,
        alignment: int = 256,
        instrumented: bool = False,
        all_bits: bool = False,
        given: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """What the candidate leaves in its output buffers. Inputs hold small whole numbers, so that sums are exact in
        any order, or with ``all_bits`` any of an integer's type, or what is ``given``; guard zones and inputs are
        checked."""
        rng = np.random.default_rng(seed)
        scalars, buffers = dict[str, ScalarValue](), []
        for argument in contract.args:
            if argument.role is Role.SCALAR:
                value = evaluate(str(argument.value), sizes) if argument.value is not None else 2
                scalars[argument.name] = ScalarValue(argument.dtype, value)
                continue
            shape = contract.shape(argument, sizes)
            ends = (0 if "u" in argument.dtype else -4, 5)
            if all_bits and "int" in argument.dtype:
                ends = int(np.iinfo(argument.dtype).min), int(np.iinfo(argument.dtype).max)
            data = (given or {}).get(argument.name, rng.integers(*ends, size=shape))
            if argument.role is Role.OUT:
                data = np.full(shape, 77)
            buffers.append(Buffer(argument.name, data.astype(argument.dtype), argument.role, alignment))
        for scratch in candidate.plan.scratch:
            empty = np.zeros(evaluate_int(scratch.count, sizes), scratch.dtype)
            buffers.append(Buffer(scratch.name, empty, None, zeroed=scratch.zeroed))
        launches = concrete_launches(candidate.plan, contract, sizes, scalars)
        if instrumented:
            built = self.toolchain.compile(candidate, instrumented=True)
            assert isinstance(built, Image), built.log
            return {"faults": np.array([str(f) for f in self.device.record(built, launches, buffers).faults])}
        with self.device.prepare(self.image(candidate), launches, buffers) as prepared:
            prepared.reset()
            prepared.run(20.0)
            assert prepared.violations() == []
            return prepared.read()

    def faults(self, candidate: Candidate, contract: Contract, sizes: Mapping[str, int]) -> list[str]:
        """Races, reads of what was never written, and accesses out of bounds in one recorded run."""
        return [str(f) for f in self.outputs(candidate, contract, sizes, instrumented=True)["faults"]]

    def check(self, subject: Subject, changed: Candidate, *all_sizes: Mapping[str, int]) -> None:
        """Assert that the changed candidate gives the original's outputs, bit for bit, at every one of the sizes."""
        for sizes in all_sizes:
            want = self.outputs(subject.candidate, subject.contract, sizes)
            got = self.outputs(changed, subject.contract, sizes)
            for name in want:
                np.testing.assert_array_equal(got[name], want[name], err_msg=f"{changed.actions[-1]} {name} {sizes}")


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    """A host device to run candidates on."""
    device = open_host_device()
    yield Runner(device)
    device.close()


@pytest.fixture(scope="session")
def subject_from() -> Callable[..., Subject]:
    """Subjects from kernel text."""
    return subject_of


@pytest.fixture(scope="session")
def apply_move() -> Callable[[Action, Subject, str], Candidate]:
    """Apply the move whose name ends in the given text; the result must parse, and compile in tests that run it."""

    def apply(action: Action, subject: Subject, ending: str) -> Candidate:
        found = [m for m in action.moves(subject) if m.name.endswith(ending)]
        assert found, f"no move ends in {ending!r}: {[m.name for m in action.moves(subject)]}"
        changed = action.apply(subject, found[0])
        assert changed.actions == (*subject.candidate.actions, found[0].name)
        assert parse_kernels(changed.source)
        return changed

    return apply


@pytest.fixture(scope="session")
def close_outputs(runner: Runner) -> Callable[..., None]:
    """Assert that a changed candidate gives the original's outputs up to rounding, at every one of the sizes."""

    def check(
        subject: Subject, changed: Candidate, all_sizes: Iterable[Mapping[str, int]], alignment: int = 256
    ) -> None:
        for sizes in all_sizes:
            for place in {256, alignment}:
                want = runner.outputs(subject.candidate, subject.contract, sizes, 1, place)
                got = runner.outputs(changed, subject.contract, sizes, 1, place)
                for name in want:
                    message = f"{changed.actions[-1]} {name} {sizes} aligned to {place}"
                    np.testing.assert_allclose(got[name], want[name], rtol=2e-4, atol=1e-4, err_msg=message)

    return check
