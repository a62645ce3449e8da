"""Many candidates in one compilation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.evaluation.batches import images
from fsr.records import Candidate, Image, Launch, Plan

ENTRY = Launch("k", ("1", "1", "1"), ("3", "1", "1"), "0", ("y",))


KERNEL = "__global__ void k(int *y) { y[0] = N; }"


@pytest.mark.parametrize("text", [f'extern "C" {KERNEL}', f'extern "C" {{\n{KERNEL}\n}}'])
def test_functions_with_c_linkage_stay_apart(text):
    candidates = [Candidate(text.replace("N", str(n)), Plan((ENTRY,))) for n in range(3)]
    built = images(HostToolchain(), candidates)
    assert [isinstance(built[n][0], Image) for n in range(3)] == [True, True, True]
    assert [built[n][1].launches[0].entry for n in range(3)] == ["c0::k", "c1::k", "c2::k"]


def test_only_what_does_not_compile_is_left_out():
    sources = ["__global__ void k(int *y) { y[0] = 1; }", "__global__ void k(int *y) { y[0] = z; }"]
    good, bad = images(HostToolchain(), [Candidate(s, Plan((ENTRY,))) for s in sources]).values()
    assert isinstance(good, tuple)
    assert "undeclared identifier 'z'" in bad.log


@pytest.mark.parametrize(
    ("declared", "entry"),
    [
        ("namespace ns { enum class Way { slow, fast };\ntemplate <Way W, int N> KERNEL }", "ns::k<ns::Way::fast, 2>"),
        ("enum class Way { slow, fast };\ntemplate <Way W, int N> KERNEL", "k<Way::fast, 2>"),
        ("enum Way { slow, fast };\ntemplate <Way W, int N> KERNEL", "k<fast, 2>"),
        ("struct Way { static constexpr int fast = 1; };\ntemplate <class W, int N> KERNEL", "k<Way, Way::fast>"),
        ("constexpr int fast = 3;\ntemplate <int W, int N> KERNEL", "k<fast, fast + 1>"),
        ("using Way = float;\ntemplate <class W, int N> KERNEL", "k<Way, sizeof(Way) + sizeof(int)>"),
        ("namespace { template <bool W, int N> KERNEL }\nusing namespace std;", "k<true, 2>"),
    ],
)
def test_what_entries_name_is_found_in_each(declared: str, entry: str):
    launch = replace(ENTRY, entry=entry)
    kernel = KERNEL.replace("= N", "= N + VALUE")
    sources = [declared.replace("KERNEL", kernel).replace("VALUE", str(n)) for n in range(3)]
    counted = Counting()
    built = images(counted, [Candidate(source, Plan((launch,))) for source in sources])
    assert all(isinstance(found, tuple) for found in built.values()), built
    assert counted.times == 1


def test_an_entry_that_is_found_in_no_namespace_is_compiled_alone():
    entry = replace(ENTRY, entry="k<HIDDEN>")
    sources = [f"#define DECLARED enum {{ HIDDEN }};\nDECLARED\ntemplate <int N> {KERNEL} // {n}" for n in range(3)]
    built = images(HostToolchain(), [Candidate(source, Plan((entry,))) for source in sources])
    assert all(isinstance(found, tuple) for found in built.values()), built


class Counting:
    """The host's compiler, and how often it is asked."""

    def __init__(self) -> None:
        self.times, self._own = 0, HostToolchain()

    def compile(self, candidate, *, instrumented=False, timeout_s=60.0):
        self.times += 1
        return self._own.compile(candidate, instrumented=instrumented, timeout_s=timeout_s)
