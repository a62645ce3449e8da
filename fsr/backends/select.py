"""The backends, found by the names of their folders, and from ``--device`` text to an open device."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from dataclasses import dataclass

import fsr.backends
from fsr.backends.backend import Backend
from fsr.backends.protocol import Device
from fsr.errors import MissingToolError, UsageError
from fsr.records import Basis

_PLANNED = ("hip",)  # known by name, so that the message is not 'unknown device'


@functools.cache
def backends() -> tuple[Backend, ...]:
    """All of them: those that measure before those that predict."""
    names = [module.name for module in pkgutil.iter_modules(fsr.backends.__path__) if module.ispkg]
    found: list[Backend] = [importlib.import_module(f"fsr.backends.{name}.backend").BACKEND for name in names]
    return tuple(sorted(found, key=lambda backend: (backend.basis is not Basis.MEASURED, backend.name)))


def backend_named(name: str) -> Backend:
    """The backend of a device as :func:`str` writes it ('cuda:1', 'host'). Raises MissingToolError."""
    kind = name.partition(":")[0]
    for backend in backends():
        if backend.name == kind:
            return backend
    raise MissingToolError(
        f"{name} cannot be opened: this version runs kernels on {' and '.join(b.name for b in backends())} only",
        expected=_expected(),
        where="--device",
        fix="--device host",
    )


def backend_for(target: str) -> Backend | None:
    """The backend that builds for an architecture; None where there is none."""
    return next((backend for backend in backends() if backend.compiles(target)), None)


def recording_backend() -> Backend:
    """The backend whose device records accesses. Raises MissingToolError."""
    for backend in backends():
        if backend.records:
            return backend
    raise MissingToolError("no backend records accesses", expected="the folder fsr/backends/host")


def _expected() -> str:
    forms = [f"{b.name}:N" if b.numbered else b.name for b in backends()]
    return f"auto, {' or '.join(forms)} (N counts from 0)"


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """``kind``: 'auto' or a backend's name; ``index`` is 0 where the kind has no numbers."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        numbered = self.kind in _PLANNED or any(b.numbered for b in backends() if b.name == self.kind)
        return f"{self.kind}:{self.index}" if numbered else self.kind


def parse_device(text: str) -> DeviceSpec:
    """A device as typed: ``auto``, ``host``, ``cuda``, ``cuda:1``. Raises UsageError."""
    match = re.fullmatch(r"([a-z]\w*)(?::([0-9]{1,3}))?", text.strip().lower(), re.ASCII)
    kind, number = match.groups() if match else ("", None)
    numbered = {**dict.fromkeys(_PLANNED, True), "auto": False} | {b.name: b.numbered for b in backends()}
    if kind not in numbered or (number and not numbered[kind]):
        raise UsageError(
            f"unknown device {text!r}", expected=_expected(), where="--device", fix="fsr doctor lists them"
        )
    return DeviceSpec(kind, int(number or 0))


def resolve_device(spec: DeviceSpec) -> DeviceSpec:
    """What 'auto' means here: the first device that measures, else the one that predicts. Others are answered as they
    are, after a check that they can be there. Raises MissingToolError."""
    if spec.kind == "auto":
        return DeviceSpec(next(b.name for b in backends() if b.gpus() or not b.numbered))
    backend_named(str(spec)).require(spec.index)
    return spec


def open_device(spec: DeviceSpec) -> Device:
    """Open a device for this process; 'auto' is resolved first. Raises MissingToolError."""
    spec = resolve_device(spec)
    return backend_named(spec.kind).open(spec.index)
