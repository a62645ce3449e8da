"""A/A on the GPU: a kernel against itself, through the paired final, is not told as faster."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from fsr.backends.cuda.compiler import cuda_toolchain
from fsr.backends.cuda.device import CudaDevice
from fsr.evaluation.timing import TimingPolicy, paired
from fsr.evaluation.verdict import paired_verdict
from fsr.records import Image, VerdictKind
from fsr.runs.kernel import load_kernel
from fsr.testgen import cases
from fsr.testgen.placing import place
from fsr.testgen.values import build

EXAMPLES = Path(__file__).parents[2] / "examples"
REPEATS = 20
FALSE_FASTER = 1  # of twenty: five in a hundred


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["softmax", "transpose", "saxpy"])
def test_a_kernel_is_rarely_called_faster_than_itself(cuda: CudaDevice, name: str) -> None:
    kernel = load_kernel(EXAMPLES / f"{name}.cu")
    contract, plan = kernel.contract, kernel.baseline.plan
    image = cuda_toolchain(cuda.info.arch).compile(kernel.baseline)
    assert isinstance(image, Image)
    found: Counter[VerdictKind] = Counter()
    with ExitStack() as stack:
        sides: list[list[object]] = [[], []]
        for case in cases.timed_cases(contract, 0, 3)[:3]:
            data = build(contract, case, 3)
            for array in data.arrays.values():
                array.flags.writeable = False
            for side in sides:
                side.append(stack.enter_context(cuda.prepare(image, *place(contract, plan, case, data))))
        policy = TimingPolicy(final_budget_ns=0.0)
        for repeat in range(REPEATS):
            old, new = sides if repeat % 2 else sides[::-1]
            samples = paired(old, new, policy, cuda.sm_clock_mhz, 5.0)  # type: ignore[arg-type]
            verdict = paired_verdict(*samples, seed=repeat)
            found[verdict.kind] += 1
    print(f"A/A {name}: {dict(found)}")
    assert found[VerdictKind.FASTER] <= FALSE_FASTER, found
