"""The cache as a run uses it: where to start, what to avoid, what to leave behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsr.cache.digest import hardware_of, json_digest, text_digest
from fsr.cache.entry import Entry
from fsr.cache.experience import keep, kept
from fsr.cache.key import CacheKey
from fsr.cache.store import Store
from fsr.evaluation.compiling import run_toolchain
from fsr.evaluation.spec import SessionSpec
from fsr.identity import candidate_from_json, to_json
from fsr.records import Basis, Candidate, DeviceInfo, Json, Outcome, Status
from fsr.runs.kernel import Kernel
from fsr.search.experience import Experience


class RunCache:
    """The cache of one run on one device; a run without a cache never opens one.

    Only measured winners are served by lookup; a predicted one is kept apart, as a place to start from."""

    def __init__(self, store: Store, kernel: Kernel, spec: SessionSpec, device: DeviceInfo) -> None:
        self._store, self._kernel, self._spec = store, kernel, spec
        self._device = device_fields(device, spec)
        self.key = cache_key(kernel, spec, self._device)
        self._note_devices(device)

    def _note_devices(self, device: DeviceInfo) -> None:
        """Lookup compares hardware by this: every GPU of the model in this machine is the one measured on."""
        driver = self._spec.backend.driver_version()
        for gpu in self._spec.backend.gpus() if driver is not None else ():
            if driver is not None and gpu.model == (device.name, device.arch):
                self._store.saw_device(gpu.uuid, driver, self._device)

    def start(self) -> Candidate | None:
        """The stored winner of this kernel here, to begin with, or that of another driver or compiler; None without
        one."""
        entry = self._store.winner(self.key) or self._store.akin(self.key)
        if entry is None:
            return None
        try:
            return candidate_from_json(entry.candidate)
        except (KeyError, TypeError):  # stored by an fsr of another form: a miss
            return None

    def failures(self) -> dict[str, str]:
        """Hash to status of candidates known to fail here."""
        return self._store.failures(self.key.context())

    def remember(self, candidate: str, outcome: Outcome) -> None:
        """Keep a failure, so that no run pays twice. Time-outs and crashes of the machine's making are not
        kept: only what the compiler, the guard and the tests refused."""
        if outcome.status in (Status.INVALID, Status.COMPILE_FAILED, Status.WRONG):
            name = outcome.status.name.lower()
            self._store.remember_failure(self.key.context(), candidate, name, _small(outcome.evidence))

    def experience(self) -> list[Experience]:
        """What earlier runs left that this fsr can read, of whatever kernel and device. Raises StorageError."""
        found = []
        for told in kept(self._store):
            with suppress(ValueError, KeyError, TypeError):  # stored by an fsr of another form
                found.append(Experience.from_json(told))
        return found

    def keep_experience(self, run: str, experience: Experience) -> None:
        """Leave what this run learned to later ones. Raises StorageError."""
        keep(self._store, run, experience.to_json())

    def publish(
        self, candidate: Candidate, files: Mapping[str, str], evidence: Mapping[str, Json], basis: Basis
    ) -> None:
        """Store a promoted winner."""
        stored: Any = to_json(candidate)
        self._store.publish(Entry(self.key, basis.value, self._device, dict(files), dict(evidence), stored))


def device_fields(device: DeviceInfo, spec: SessionSpec) -> dict[str, Any]:
    """The fields of a DeviceInfo; on the host device the target takes part, since it decides the prediction."""
    fields: Any = to_json(device)
    if spec.predicted:
        fields["name"] = f"{fields['name']} predicting {spec.target}"
    return dict(fields)


def cache_key(kernel: Kernel, spec: SessionSpec, device: Mapping[str, Any]) -> CacheKey:
    """The key of a kernel on a device."""
    return CacheKey(
        source=text_digest(kernel.file.path.read_bytes()),
        includes=kernel.includes(),
        entry=kernel.contract.entry,
        contract=kernel.contract_digest(),
        flags=kernel.contract.plan.flags,
        compiler=run_toolchain(spec).version,
        hardware=json_digest(hardware_of(device)),
        driver=str(device.get("driver")),
        policy=spec.policy.version,
        given=kernel.given,
    )


def _small(evidence: Mapping[str, Json]) -> dict[str, Json]:
    """Evidence short enough to keep for every failure."""
    return {k: v[:400] if isinstance(v, str) else v for k, v in evidence.items() if len(json.dumps(v)) < 4000}


def open_store(path: str) -> Store:
    """The cache database for writing. Raises StorageError."""
    return Store(Path(path))
