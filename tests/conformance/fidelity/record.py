"""Record the fidelity corpus on an NVIDIA GPU: python tests/conformance/fidelity/record.py OUT.json

The recording is committed under recorded/, so that machines without a GPU compare with real bits.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]

from fidelity_corpus import load_programs, run_unit, save_recording, units  # noqa: E402

from fsr.backends.cuda.device import CudaDevice  # noqa: E402
from fsr.backends.cuda.nvrtc import NvrtcToolchain  # noqa: E402


def main(path: str) -> None:
    """Record everything; a unit that does not compile or run ends the recording with its message."""
    device = CudaDevice(0)
    try:
        toolchain = NvrtcToolchain(arch=device.info.arch)
        programs = load_programs()
        outputs = {}
        for unit in units(programs):
            outputs |= run_unit(toolchain, device, unit)
            print(f"{len(outputs)} of {len(programs)} programs", file=sys.stderr)
        save_recording(Path(path), device.info.name, toolchain.version, programs, outputs)
    finally:
        device.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
