"""What this device can do at most, measured once a session: the ceilings of the roofline."""

from __future__ import annotations

import numpy as np

from fsr.backends.protocol import Buffer, DeviceFault, TimedDevice, can_time
from fsr.errors import FsrError
from fsr.evaluation.compiling import run_toolchain
from fsr.evaluation.session import Session
from fsr.features.roofline import Ceilings
from fsr.records import Candidate, ConcreteLaunch, Image, Launch, Plan, Role, ScalarValue

_CHAINS, _ROUNDS, _THREADS, _BLOCKS_PER_SM = 8, 4096, 256, 8
_SAMPLES = 5
# Independent chains of fused multiply-adds hide their latency; the store, which never happens, keeps them.
_SOURCE = f"""__global__ void fsr_peak(float *out, float a, float b) {{
    float x[{_CHAINS}];
    for (int c = 0; c < {_CHAINS}; ++c) x[c] = a + c + threadIdx.x;
    for (int i = 0; i < {_ROUNDS}; ++i)
        for (int c = 0; c < {_CHAINS}; ++c) x[c] = fmaf(x[c], a, b);
    float sum = 0.0f;
    for (int c = 0; c < {_CHAINS}; ++c) sum += x[c];
    if (sum == 1.2345678f) out[threadIdx.x] = sum;
}}
"""


def ceilings_of(session: Session) -> Ceilings | None:
    """The ceilings of the session's device; None of one without a clock, whose times are predicted."""
    device = session.device
    if not can_time(device):
        return None
    return Ceilings(device.copy_bandwidth(), _instruction_rate(session, device), device.info.l2_bytes or 0)


def _instruction_rate(session: Session, device: TimedDevice) -> float | None:
    """FP32 fused multiply-adds of threads a second: the best of five runs of about half a millisecond. None where they
    cannot be run."""
    blocks = (device.info.sm_count or 1) * _BLOCKS_PER_SM
    args = ("out", ScalarValue("float32", 0.999), ScalarValue("float32", 0.001))
    launch = ConcreteLaunch("fsr_peak", (blocks, 1, 1), (_THREADS, 1, 1), 0, args)
    plan = Plan((Launch("fsr_peak", (str(blocks), "1", "1"), (str(_THREADS), "1", "1"), "0", ()),))
    try:
        image = run_toolchain(session.spec).compile(Candidate(_SOURCE, plan))
        if not isinstance(image, Image):
            return None
        with device.prepare(image, [launch], [Buffer("out", np.zeros(_THREADS, np.float32), Role.OUT)]) as prepared:
            prepared.run()
            best_ns = min(prepared.time_ns() for _ in range(_SAMPLES))
    except (DeviceFault, FsrError):
        return None
    return blocks * _THREADS * _ROUNDS * _CHAINS / (best_ns * 1e-9)
