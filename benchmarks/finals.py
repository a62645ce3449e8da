"""How often the paired final is wrong: kernels against themselves, and against changes of 2 % that were planted.

    python benchmarks/finals.py OUT_DIR [--device cuda:0] [--finals 200] [--planted 100] [--gpu-ms 500]

A/A: every example's baseline against itself, each side with memory of its own, sides swapped every time. Planted: a
compute-bound and a memory-bound kernel against themselves with 2 % more or less work. The final is the one that
promotes: same policy, same clock checks, same bootstrap. Results go to OUT_DIR/finals.json; exits 1 when more than 1 %
of the A/A finals say FASTER, or a planted change is told as its reverse, or under 95 % are called rightly or AMBIGUOUS.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.backends.cuda.compiler import cuda_toolchain  # noqa: E402
from fsr.backends.protocol import Buffer, TimedDevice, TimedPrepared  # noqa: E402
from fsr.backends.select import open_device, parse_device  # noqa: E402
from fsr.evaluation.timing import TimingPolicy, paired  # noqa: E402
from fsr.evaluation.verdict import paired_verdict  # noqa: E402
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue, VerdictKind  # noqa: E402
from fsr.runs.kernel import load_kernel  # noqa: E402
from fsr.testgen import cases  # noqa: E402
from fsr.testgen.placing import place  # noqa: E402
from fsr.testgen.values import build  # noqa: E402

CHANGE = 0.02
FALSE_FASTER, RIGHT = 0.01, 0.95

COMPUTE = """
__global__ void spin(float *y, int steps)
{
    float a = threadIdx.x * 1e-3f;
    for (int i = 0; i < steps; i++) a = a * 0.999f + 1e-3f;
    y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
"""
MEMORY = """
__global__ void copy(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}
"""
STEPS, ELEMENTS = 20_000, 1 << 25


def compiled(device: TimedDevice, candidate: Candidate) -> Image:
    """The candidate's binary for the device. Exits when it does not compile."""
    image = cuda_toolchain(device.info.arch).compile(candidate)
    if not isinstance(image, Image):
        raise SystemExit(image.log)
    return image


def planted(device: TimedDevice, stack: ExitStack, source: str, entry: str, work: int) -> TimedPrepared:
    """One of the two kernels with this much work, ready to run."""
    plan = Plan((Launch(entry, ("1", "1", "1"), ("256", "1", "1"), "0", ()),))
    image = compiled(device, Candidate(source, plan))
    y = Buffer("y", np.zeros(ELEMENTS, np.float32), Role.OUT)
    amount = ScalarValue("int32", work)
    if entry == "spin":
        launch = ConcreteLaunch(entry, (132 * 8, 1, 1), (256, 1, 1), 0, ("y", amount))
        return stack.enter_context(device.prepare(image, [launch], [y]))
    launch = ConcreteLaunch(entry, (132 * 8, 1, 1), (256, 1, 1), 0, ("x", "y", amount))
    return stack.enter_context(device.prepare(image, [launch], [Buffer("x", y.array, Role.IN), y]))


def itself(device: TimedDevice, finals: int, policy: TimingPolicy) -> Iterator[dict[str, Any]]:
    """A/A finals, shared out over the examples."""
    paths = sorted((ROOT / "examples").glob("*.cu"))
    for position, path in enumerate(paths):
        kernel = load_kernel(path)
        image = compiled(device, kernel.baseline)
        with ExitStack() as stack:
            sides: list[list[TimedPrepared]] = [[], []]
            for case in cases.timed_cases(kernel.contract, 0, 3)[:3]:
                data = build(kernel.contract, case, 3)
                for array in data.arrays.values():
                    array.flags.writeable = False
                for side in sides:
                    placed = place(kernel.contract, kernel.baseline.plan, case, data)
                    side.append(stack.enter_context(device.prepare(image, *placed)))
            for number in range(position, finals, len(paths)):
                old, new = sides if number // len(paths) % 2 else sides[::-1]
                yield told(device, path.stem, 1.0, old, new, policy, number)


def changes(device: TimedDevice, finals: int, policy: TimingPolicy) -> Iterator[dict[str, Any]]:
    """Finals with planted changes, half of them gains."""
    for position, (source, entry, work) in enumerate(((COMPUTE, "spin", STEPS), (MEMORY, "copy", int(ELEMENTS / 1.1)))):
        with ExitStack() as stack:
            usual = [planted(device, stack, source, entry, work)]
            less = [planted(device, stack, source, entry, round(work / (1 + CHANGE)))]
            for number in range(position, finals, 2):
                gain = number // 2 % 2 == 0
                old, new = (usual, less) if gain else (less, usual)
                yield told(device, entry, 1 + CHANGE if gain else 1 / (1 + CHANGE), old, new, policy, number)


def told(
    device: TimedDevice, kernel: str, true: float, old: list[TimedPrepared], new: list[TimedPrepared],
    policy: TimingPolicy, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """One final, as a row."""
    verdict = paired_verdict(*paired(old, new, policy, device.sm_clock_mhz, 5.0), seed=seed)
    return {
        "kernel": kernel, "true": true, "verdict": verdict.kind.value, "speedup": verdict.speedup,
        "ci95": list(verdict.ci95), "pairs": verdict.pairs,
    }  # fmt: skip


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts, and whether they hold."""
    same = Counter(r["verdict"] for r in rows if r["true"] == 1.0)
    planted_rows = [r for r in rows if r["true"] != 1.0]
    right = {True: VerdictKind.FASTER.value, False: VerdictKind.SLOWER.value}
    good = sum(r["verdict"] in (right[r["true"] > 1], VerdictKind.AMBIGUOUS.value) for r in planted_rows)
    reverse = sum(r["verdict"] == right[r["true"] < 1] for r in planted_rows)
    holds = (
        same[VerdictKind.FASTER.value] <= FALSE_FASTER * max(1, sum(same.values()))
        and good >= RIGHT * len(planted_rows)
        and not reverse
    )
    return {
        "same": dict(same), "planted": dict(Counter((r["verdict"]) for r in planted_rows)),
        "planted_finals": len(planted_rows), "right_or_ambiguous": good, "reverse": reverse, "holds": holds,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--finals", type=int, default=200)
    parser.add_argument("--planted", type=int, default=100)
    parser.add_argument("--gpu-ms", type=float, default=500.0, help="GPU time of a final, at least")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device: TimedDevice = open_device(parse_device(given.device))  # type: ignore[assignment]
    policy = TimingPolicy(final_budget_ns=given.gpu_ms * 1e6)
    started, rows = time.monotonic(), []
    try:
        for source in (itself(device, given.finals, policy), changes(device, given.planted, policy)):
            rows += list(source)
    finally:
        found = summary(rows)
        found |= {"device": device.info.name, "driver": device.info.driver, "seconds": time.monotonic() - started}
        (given.out / "finals.json").write_text(json.dumps({**found, "rows": rows}, indent=1))
        print(json.dumps(found, indent=1))
        device.close()
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
