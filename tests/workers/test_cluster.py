"""A cluster by its name, by its GPUs, and by what its nodes are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.errors import MissingToolError
from fsr.workers.cluster import ClusterName, copy_modules, gpus_by_type, require_type

NODES = [
    {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0, "accelerator_type:H200": 1.0}},
    {"Alive": True, "Resources": {"CPU": 8.0, "GPU": 4.0, "accelerator_type:L4": 1.0}},
    {"Alive": True, "Resources": {"GPU": 1.0, "accelerator_type:H200": 1.0}},
    {"Alive": False, "Resources": {"GPU": 8.0, "accelerator_type:H100": 1.0}},
    {"Alive": True, "Resources": {"CPU": 2.0}},
    {"Alive": True, "Resources": {"GPU": 1.0}},
]


def test_a_type_may_follow_the_address() -> None:
    assert ClusterName.parse("head:6379") == ClusterName("head:6379")
    assert ClusterName.parse("auto#H200") == ClusterName("auto", "H200")
    assert str(ClusterName("auto", "H200")) == "auto#H200"


def test_gpus_are_counted_by_type_on_nodes_that_live() -> None:
    assert gpus_by_type(NODES) == {"H200": 3, "L4": 4, "": 1}


def test_a_type_that_is_not_there_is_told_with_those_that_are() -> None:
    require_type(ClusterName("auto", "L4"), gpus_by_type(NODES))
    with pytest.raises(MissingToolError, match="no GPU of the type 'H100'") as told:
        require_type(ClusterName("auto", "H100"), gpus_by_type(NODES))
    assert "3 H200, 4 L4" in str(told.value)


def test_only_python_files_beside_the_kernel_are_sent(tmp_path: Path) -> None:
    (tmp_path / "kernels" / "sub.py").mkdir(parents=True)
    (tmp_path / "sent").mkdir()
    for name in ("reference.py", "helper.py", "kernel.cu", "weights.bin"):
        (tmp_path / "kernels" / name).write_text(name)
    copy_modules(tmp_path / "kernels", tmp_path / "sent")
    assert {path.name: path.read_text() for path in (tmp_path / "sent").iterdir()} == {
        "reference.py": "reference.py", "helper.py": "helper.py",
    }  # fmt: skip
