"""What may be typed after --device, and what opens."""

from __future__ import annotations

import pytest

from fsr.backends.select import DeviceSpec, open_device, parse_device, resolve_device
from fsr.errors import EXIT_MISSING_TOOL, MissingToolError, UsageError
from tests.nvidia import FakeDriver, use_driver


@pytest.mark.parametrize(
    ("text", "kind", "index", "shown"),
    [
        ("auto", "auto", 0, "auto"),
        ("host", "host", 0, "host"),
        ("cuda", "cuda", 0, "cuda:0"),
        ("cuda:3", "cuda", 3, "cuda:3"),
        (" CUDA:12 ", "cuda", 12, "cuda:12"),
        ("hip:1", "hip", 1, "hip:1"),
    ],
)
def test_device_texts(text: str, kind: str, index: int, shown: str) -> None:
    assert parse_device(text) == DeviceSpec(kind, index)
    assert str(parse_device(text)) == shown


@pytest.mark.parametrize("text", ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "host:0", "rocm", "cuda:0,1", "cuda:12345"])
def test_other_texts_are_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_device(text)
    assert "cuda:N" in caught.value.expected


@pytest.mark.parametrize(("count", "kind"), [(0, "host"), (2, "cuda")])
def test_auto_is_the_first_gpu_or_else_the_host(monkeypatch: pytest.MonkeyPatch, count: int, kind: str) -> None:
    use_driver(monkeypatch, FakeDriver(*["NVIDIA H200"] * count))
    assert resolve_device(DeviceSpec("auto")) == DeviceSpec(kind)


@pytest.mark.parametrize(("count", "index", "says"), [(0, 0, "an NVIDIA GPU"), (2, 2, "cuda:0 to cuda:1")])
def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, count: int, index: int, says: str) -> None:
    use_driver(monkeypatch, FakeDriver(*["NVIDIA H200"] * count))
    with pytest.raises(MissingToolError) as caught:
        open_device(DeviceSpec("cuda", index))
    assert says in caught.value.expected
    assert caught.value.exit_code == EXIT_MISSING_TOOL


def test_hip_is_known_and_said_to_be_missing() -> None:
    with pytest.raises(MissingToolError, match="hip:0 cannot be opened"):
        open_device(parse_device("hip"))


def test_the_host_device_opens_everywhere() -> None:
    device = open_device(parse_device("host"))
    try:
        assert device.info.vendor == "host"
    finally:
        device.close()
