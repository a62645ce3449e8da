"""Runs one plan once in a process of its own, for compute-sanitizer to watch: ``python -m fsr.backends.cuda.replay
FOLDER``. Every buffer is an allocation of exactly its size, so that one byte beyond it is seen.

The folder holds ``plan.json`` (written by :func:`write_replay`), ``image.cubin`` and ``arrays.npz``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from fsr.backends.cuda.driver import Driver, DriverError
from fsr.backends.cuda.launching import constant_addresses, load_launch, pack_arguments
from fsr.backends.cuda.pycuda_driver import PyCudaDriver
from fsr.backends.protocol import Buffer, DeviceFault
from fsr.identity import to_json
from fsr.records import ConcreteLaunch, Image, ParameterBlock, Role, ScalarValue
from fsr.sandbox.parent import die_with_parent

EXIT_REFUSED = 3  # the plan could not be launched; the message is on standard error

_GIVEN = (Role.IN, Role.INOUT)


def write_replay(folder: Path, image: Image, launches: Sequence[ConcreteLaunch], buffers: Sequence[Buffer]) -> None:
    """Write what :func:`main` reads. Outputs and unzeroed scratch are marked, since their initial contents are not
    to count as written."""
    plan = {
        "arch": image.arch,
        "symbols": dict(image.symbols),
        "blocks": {entry: [block.offsets, block.parameters] for entry, block in image.blocks.items()},
        "launches": [to_json(launch) for launch in launches],
        "buffers": [
            {"name": b.name, "bytes": b.array.nbytes, "given": b.role in _GIVEN, "zeroed": b.zeroed, "symbol": b.symbol}
            for b in buffers
        ],
    }
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / "image.cubin").write_bytes(image.data)
    given = {f"b{i}": b.contents().reshape(-1).view(np.uint8) for i, b in enumerate(buffers) if b.role in _GIVEN}
    np.savez(folder / "arrays.npz", **cast(Any, given))


def replay(folder: Path, driver: Driver) -> None:
    """Allocate, fill, launch, wait. Raises DeviceFault or DriverError."""
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    data = (folder / "image.cubin").read_bytes()
    blocks = {n: ParameterBlock(tuple(o), tuple((s, b) for s, b in p)) for n, (o, p) in plan["blocks"].items()}
    image = Image("cubin", plan["arch"], data, plan["symbols"], {}, blocks=blocks)
    arrays = np.load(folder / "arrays.npz")
    addresses = {}
    for index, buffer in enumerate(plan["buffers"]):
        address = addresses[buffer["name"]] = driver.alloc(max(buffer["bytes"], 1))
        if buffer["given"]:
            driver.upload(address, arrays[f"b{index}"])
        elif buffer["zeroed"]:
            driver.fill(address, 0, buffer["bytes"])
    module = driver.load(image.data)
    wanted = {b["symbol"]: b["bytes"] for b in plan["buffers"] if b["symbol"]}
    entry = plan["launches"][0]["entry"] if plan["launches"] else ""
    constants = constant_addresses(driver, module, image, wanted, entry)
    for index, buffer in enumerate(plan["buffers"]):
        if buffer["symbol"]:
            driver.upload(constants[buffer["symbol"]], arrays[f"b{index}"])
    for data in plan["launches"]:
        args = tuple(a if isinstance(a, str) else ScalarValue(a["dtype"], a["value"]) for a in data["args"])
        launch = ConcreteLaunch(data["entry"], tuple(data["grid"]), tuple(data["block"]), data["shared_bytes"], args)
        loaded = load_launch(driver, module, image, launch)
        driver.launch(
            loaded.function, launch.grid, launch.block, pack_arguments(launch, addresses, loaded.block),
            launch.shared_bytes,
        )  # fmt: skip
    driver.synchronize()
    for address in addresses.values():
        driver.free(address)


def main(arguments: Sequence[str]) -> int:
    """Replay the folder named; 0, or EXIT_REFUSED with a message."""
    die_with_parent()
    driver = PyCudaDriver(int(arguments[1]) if len(arguments) > 1 else 0)
    try:
        replay(Path(arguments[0]), driver)
    except (DeviceFault, DriverError) as fault:
        print(f"replay: {fault}", file=sys.stderr)
        return EXIT_REFUSED
    driver.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
