"""How good are the tests? Faults are planted in good kernels; the generated tests and the recorder must find them.

Every mutant of a kernel goes into one compilation, each in a namespace of its own. A mutant counts as caught when
a search case gives a wrong answer, a device fault or a hang, or when the recorder sees a fault in one of a few cases.
Mutants that compute the same as the original on every input are named below with the reason, and do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fsr.backends.protocol import DeviceFault
from fsr.contract.load import load_contract
from fsr.contract.model import Contract
from fsr.records import Candidate, Case, Image, Plan
from fsr.testgen import cases
from fsr.testgen.candidate_file import read_candidate
from fsr.testgen.compare import compare
from fsr.testgen.mutants import Mutant, mutants
from fsr.testgen.oracle import Expected, expect
from fsr.testgen.placing import place
from fsr.testgen.values import CaseData, build

ROOT = Path(__file__).parents[2]
ELEMENTS = 4096
TIMEOUT_S = 0.5
RECORDED = 3
SCORE = 0.9  # 429 of 431 were found when this was written


@dataclass(frozen=True)
class Subject:
    """A good kernel: its file, and the mutants that no test can tell from it, with the reason."""

    path: str
    equivalent: dict[str, str]


LEGAL = "the contract keeps every value within the bins, so the kernel's own check never fires"
SUBJECTS = [
    Subject("examples/saxpy.cu", {}),
    Subject(
        "examples/softmax.cu", {"initial@30:18": "the maximum starts at element 0: looking at it again changes nothing"}
    ),
    Subject("examples/layer_norm.cu", {}),
    Subject("examples/transpose.cu", {}),
    Subject("examples/reduction.cu", {}),
    Subject("examples/gemm.cu", {}),
    Subject("examples/stencil.cu", {}),
    Subject("examples/histogram.cu", {"guard@29:13": LEGAL, "bound@29:29": LEGAL}),
    Subject(
        "tests/cheats/honest/gemm_tiled.cu",
        {
            "index-shifted@8:37": "a shared array that is larger than needed",
            "bound@11:23": "one more tile, all zeros",
        },
    ),
    Subject("tests/cheats/honest/transpose_tiled.cu", {}),
    Subject(
        "tests/cheats/honest/histogram_shared.cu",
        {
            "guard@15:13": LEGAL,
            "bound@15:29": LEGAL,
            "guard@19:13": "adds counts of zero",
            "bound@19:22": "adds counts of zero",
        },
    ),
    Subject(
        "tests/cheats/honest/softmax_row_per_warp.cu",
        {
            "constant@12:46": "half the stride: elements are looked at twice, which does not change a maximum",
            "constant@18:46": "half the stride: the same values are written twice",
        },
    ),
]
EXAMPLE_OF = {"gemm_tiled": "gemm", "transpose_tiled": "transpose", "histogram_shared": "histogram",
              "softmax_row_per_warp": "softmax"}  # fmt: skip


def loaded(subject: Subject) -> tuple[Contract, Candidate]:
    path = ROOT / subject.path
    contract = load_contract(ROOT / "examples" / f"{EXAMPLE_OF.get(path.stem, path.stem)}.cu")
    if path.stem in EXAMPLE_OF:
        return contract, read_candidate(path, contract)
    return contract, Candidate(path.read_text(), contract.plan)


def together(candidate: Candidate, planted: list[Mutant]) -> tuple[Candidate, list[Plan]]:
    """All mutants as one source, and the plan that launches each."""
    parts, plans, includes = [], [], {"#include <cuda_fp16.h>"}
    (launch,) = candidate.plan.launches
    for number, mutant in enumerate(planted):
        includes |= set(re.findall(r"^#include .*$", mutant.source, re.MULTILINE))
        body = re.sub(r"^#include .*$", "", mutant.source, flags=re.MULTILINE)
        parts.append(f"namespace m{number} {{\n{body}\n}}\n")
        plans.append(replace(candidate.plan, launches=(replace(launch, entry=f"m{number}::{launch.entry}"),)))
    everything = Plan(tuple(p.launches[0] for p in plans), candidate.plan.scratch)
    return Candidate("\n".join([*sorted(includes), *parts]), everything), plans


class Laboratory:
    """One kernel on the host device: its cases and what the original answers."""

    def __init__(self, contract: Contract, candidate: Candidate) -> None:
        from fsr.backends.host.device import open_host_device
        from fsr.testgen.widen import widen_candidate

        self.contract, self.candidate = contract, candidate
        self.device = open_host_device()
        found = cases.search_cases(contract, candidate, 1, max_elements=ELEMENTS)
        self.cases = sorted(found, key=lambda c: c.family != "normal")  # the cheap and telling ones first
        image = compiled(candidate)
        wide = widen_candidate(candidate)
        wide_image = compiled(wide) if wide else None
        self.expected: dict[Case, Expected] = {}
        for case in self.cases:
            precise = (lambda c, d: self.run(wide_image, wide.plan, c, d)) if wide and wide_image else None
            self.expected[case] = expect(
                contract, case, lambda c, d: self.run(image, candidate.plan, c, d), precise=precise
            )

    def run(self, image: Image, plan: Plan, case: Case, data: CaseData, timeout_s: float = 10.0) -> dict:
        launches, buffers = place(self.contract, plan, case, data)
        if not launches:
            return {n: a.copy() for n, a in data.arrays.items()}
        with self.device.prepare(image, launches, buffers) as prepared:
            prepared.run(timeout_s)
            broken = prepared.violations()
            if broken:
                raise DeviceFault(broken[0])
            return prepared.read()

    def survives_tests(self, image: Image, plan: Plan) -> bool:
        for case in self.cases:
            for poison_seed in (1, 2):
                data = build(self.contract, case, poison_seed)
                try:
                    got = self.run(image, plan, case, data, TIMEOUT_S)
                except DeviceFault:
                    return False
                if compare(self.contract, case, got, self.expected[case], data.arrays):
                    return False
        return True

    def survives_recording(self, image: Image, plan: Plan) -> bool:
        by_size = sorted(self.cases, key=lambda c: cases.elements(self.contract, c.size_map()))
        some = [c for c in by_size if min(c.size_map().values()) > 0]
        for case in (*some[:RECORDED], *some[-RECORDED:]):
            launches, buffers = place(self.contract, plan, case, build(self.contract, case, 3))
            try:
                if launches and self.device.record(image, launches, buffers, timeout_s=5).faults:
                    return False
            except DeviceFault:
                return False
        return True


def compiled(candidate: Candidate, *, instrumented: bool = False) -> Image:
    from fsr.backends.host.compiler import HostToolchain

    image = HostToolchain().compile(candidate, instrumented=instrumented)
    assert isinstance(image, Image), image.log
    return image


def survivors(subject: Subject) -> tuple[list[str], int]:
    """The names of the mutants that nothing noticed, and how many were planted."""
    contract, candidate = loaded(subject)
    planted = mutants(candidate.source, candidate.plan.launches[0].entry)
    planted = [m for m in planted if m.name not in subject.equivalent]
    laboratory = Laboratory(contract, candidate)
    try:
        alive = list(_unnoticed(laboratory, candidate, planted))
    finally:
        laboratory.device.close()
    return alive, len(planted)


def _unnoticed(laboratory: Laboratory, candidate: Candidate, planted: list[Mutant]) -> Iterator[str]:
    source, plans = together(candidate, planted)
    image = compiled(source)
    left = [m for m, plan in zip(planted, plans, strict=True) if laboratory.survives_tests(image, plan)]
    if not left:
        return
    source, plans = together(candidate, left)
    image = compiled(source, instrumented=True)
    for mutant, plan in zip(left, plans, strict=True):
        if laboratory.survives_recording(image, plan):
            yield mutant.name


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: Path(s.path).stem)
def test_planted_faults_are_found(subject: Subject) -> None:
    alive, count = survivors(subject)
    assert count >= 7
    score = 1 - len(alive) / count
    assert score >= SCORE, f"{score:.0%} of {count} planted faults found; unnoticed: {', '.join(alive)}"
