"""Every backend, held to the same; and one that is added as a folder, without touching another file."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import fsr.backends
from fsr.backends.backend import Backend, Finding
from fsr.backends.protocol import can_record, can_time
from fsr.backends.seats import Seat, seat_task
from fsr.backends.select import (
    DeviceSpec,
    backend_for,
    backend_named,
    backends,
    open_device,
    parse_device,
    recording_backend,
    resolve_device,
)
from fsr.cli import probe
from fsr.errors import MissingToolError, UsageError
from fsr.records import Basis
from tests.nvidia import use_driver

FOLDER = Path(__file__).parent / "folder"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A third folder beside cuda and host."""
    monkeypatch.setattr(fsr.backends, "__path__", [*fsr.backends.__path__, str(FOLDER)])
    use_driver(monkeypatch, None)
    backends.cache_clear()
    yield backend_named("toy:1")
    backends.cache_clear()


@pytest.mark.parametrize("backend", [*backends()], ids=lambda backend: backend.name)
class TestEveryBackend:
    """The conformance suite: what evaluation, runs, cache and doctor rely on."""

    def test_it_answers_all_that_is_asked(self, backend: Backend) -> None:
        asked = {name for name in vars(Backend) if not name.startswith("_")} | set(Backend.__annotations__)
        assert [name for name in sorted(asked) if not hasattr(backend, name)] == []
        for name, function in inspect.getmembers(Backend, inspect.isfunction):
            if not name.startswith("_"):
                assert list(inspect.signature(getattr(backend, name)).parameters) == [
                    p for p in inspect.signature(function).parameters if p != "self"
                ]

    def test_its_name_is_its_folders_and_its_devices(self, backend: Backend) -> None:
        text = f"{backend.name}:2" if backend.numbered else backend.name
        spec = parse_device(text)
        assert str(spec) == text
        assert backend_named(str(spec)) is backend
        assert type(backend).__module__ == f"fsr.backends.{backend.name}.backend"

    def test_its_limits_leave_room_for_tests(self, backend: Backend) -> None:
        assert backend.limits.elements >= 1 << 10
        assert backend.limits.least_s > 0

    def test_what_runs_on_the_cpu_is_confined_and_what_it_predicts_is_told_so(self, backend: Backend) -> None:
        assert backend.confined == (backend.basis is Basis.PREDICTED)

    def test_a_number_without_a_device_is_refused(self, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
        use_driver(monkeypatch, None)
        if backend.numbered:
            with pytest.raises(MissingToolError) as caught:
                backend.require(0)
            assert caught.value.expected
        else:
            with pytest.raises(UsageError):
                parse_device(f"{backend.name}:0")

    def test_its_device_can_do_what_it_says(self, backend: Backend) -> None:
        try:
            device = backend.open(0)
        except MissingToolError:
            pytest.skip(f"{backend.name} has no device here")
        try:
            assert can_time(device) == (backend.basis is Basis.MEASURED) == hasattr(device, "copy_bandwidth")
            assert can_record(device) == backend.records == hasattr(device, "record")
        finally:
            device.close()

    def test_it_has_no_tools_but_those_it_tells_of(self, backend: Backend) -> None:
        assert backend.sanitizes or backend.sanitize(None, [], [], 0) == []  # type: ignore[arg-type]


def test_a_folder_is_all_that_a_backend_needs(toy: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    assert [backend.name for backend in backends()] == ["cuda", "toy", "host"]
    assert str(parse_device("TOY:1")) == "toy:1"
    assert resolve_device(DeviceSpec("auto")) == DeviceSpec("toy")
    assert backend_for("toy_1") is toy
    assert seat_task(None) == Seat(toy.gpus()[0], node=seat_task(None).node, backend="toy")
    with pytest.raises(MissingToolError, match="toys do not open"):
        open_device(parse_device("toy"))
    with pytest.raises(MissingToolError, match="no device toy:2"):
        open_device(parse_device("toy:2"))
    with pytest.raises(UsageError) as caught:
        parse_device("gpu")
    assert "toy:N" in caught.value.expected


def test_the_doctor_asks_every_backend(toy: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in backends():
        if backend is not toy:
            monkeypatch.setattr(type(backend), "findings", lambda self: iter([Finding(self.name, "note", "")]))
    asked = [finding.what for finding in probe.findings()]
    assert [name for name in asked if name in ("cuda", "toy", "host")] == ["cuda", "toy", "host"]


def test_no_architecture_is_built_for_by_two() -> None:
    for target in ("sm_90", "sm_75", "gfx942", ""):
        assert sum(backend.compiles(target) for backend in backends()) <= 1
    assert backend_for("sm_90") is backend_named("cuda:0")
    assert recording_backend() is backend_named("host")
