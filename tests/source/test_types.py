"""Type names that namespaces declare, qualified or not."""

from __future__ import annotations

from pathlib import Path

from fsr.source.file import KernelFile
from fsr.source.pieces import scan
from fsr.source.signature import signature
from fsr.source.types import aliases, resolve_dtype

SPACES = """#include <cstdint>
namespace a { using t = std::int32_t; namespace b { using t = float; typedef std::size_t len; } }
namespace c { using t = double; using byte_t = ::std::uint8_t; }
namespace a { namespace b {
__global__ void k(t *x, a::t *y, c::t *z, c::byte_t *const w, const std::uint16_t *v, ::std::size_t n, len m, b::t s) {
}
} }
"""


def test_names_of_namespaces_are_followed_from_where_the_kernel_stands() -> None:
    found = signature(KernelFile(scan(Path("k.cu"), SPACES)), "k")
    assert [p.dtype for p in found.params] == [
        "float32", "int32", "float64", "uint8", "uint16", "uint64", "uint64", "float32",
    ]  # fmt: skip


def test_a_name_of_the_file_counts_at_the_files_own_level() -> None:
    text = "using t = float;\nnamespace c { using t = double; }\n__global__ void k(t *x, c::t *y) {}\n"
    found = signature(KernelFile(scan(Path("k.cu"), text)), "k")
    assert [p.dtype for p in found.params] == ["float32", "float64"]


def test_names_of_a_unit() -> None:
    assert resolve_dtype("const c :: byte_t", aliases(SPACES)) == ("uint8", 1)
    assert resolve_dtype("len", aliases(SPACES)) == ("uint64", 1)
