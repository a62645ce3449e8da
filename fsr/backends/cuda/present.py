"""Which NVIDIA GPUs are in this machine, without a driver call where possible. Standard library alone.

``cuInit`` costs 0.1 s and more; the kernel driver's files under /proc tell GPU and driver in microseconds.
"""

from __future__ import annotations

import os

PROC = "/proc/driver/nvidia"


def present(proc: str = PROC) -> tuple[str, list[str]] | None:
    """(driver version, GPU UUIDs in bus order) from the kernel driver's files, or None without them."""
    try:
        words = _text(f"{proc}/version").split("Kernel Module")[1].split()
        driver = next(w for w in words if w[0].isdigit())
        uuids = [
            line.split(":", 1)[1].strip()
            for folder in sorted(os.listdir(f"{proc}/gpus"))  # noqa: PTH208  # pathlib costs lookup 4 ms
            for line in _text(f"{proc}/gpus/{folder}/information").splitlines()
            if line.startswith("GPU UUID")
        ]
    except (OSError, IndexError, StopIteration):
        return None
    return (driver, uuids) if uuids and not any("?" in uuid for uuid in uuids) else None


def _text(path: str) -> str:
    with open(path) as file:  # noqa: PTH123
        return file.read()


def asked(timeout_s: float = 10.0) -> tuple[str, list[str]] | None:
    """The same from ``nvidia-smi``, slower; None when there is none."""
    if not any(os.access(f"{folder}/nvidia-smi", os.X_OK) for folder in os.get_exec_path()):
        return None
    import subprocess

    from fsr.sandbox.environment import run_tool

    command = ["nvidia-smi", "--query-gpu=driver_version,uuid", "--format=csv,noheader"]
    try:
        text = run_tool(command, timeout=timeout_s, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    rows = [[part.strip() for part in line.split(",")] for line in text.splitlines() if "," in line]
    return (rows[0][0], [uuid for _, uuid in rows]) if rows else None


def numbered(index: int) -> tuple[str, str] | None:
    """(driver version, UUID) of GPU ``index`` as CUDA numbers them; None when there is no such."""
    found = present() or asked()
    if found is None:
        return None
    uuids = visible(found[1], os.environ.get("CUDA_VISIBLE_DEVICES"))
    return (found[0], uuids[index]) if index < len(uuids) else None


def visible(uuids: list[str], chosen: str | None) -> list[str]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in its order: numbers or beginnings of UUIDs, up to the first that
    is neither."""
    if chosen is None:
        return uuids
    left: list[str] = []
    for word in (part.strip() for part in chosen.split(",")):
        fits = [uuids[int(word)]] if word.isdigit() and int(word) < len(uuids) else []
        if word.startswith("GPU-"):
            fits = [uuid for uuid in uuids if uuid.startswith(word)]
        if len(fits) != 1:
            break
        left += fits
    return left
