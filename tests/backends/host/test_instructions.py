"""Instruction weights from a listing, and that loops count as often as they run."""

from __future__ import annotations

import numpy as np
import pytest

from fsr.backends.host.instructions import read_blocks
from fsr.backends.host.wide import Row, merge_wide, vector_sizes

LISTING = """
0000000000001230 <k>:
    1230:\tpush   %rbp
    1231:\tcall   4350 <__sanitizer_cov_trace_pc>
    1236:\tmov    %rdi,%r15
    1239:\tmov    0x18(%rsp),%rcx
    123e:\tlea    (%rcx,%rax,4),%rdi
    1242:\tcall   3790 <__tsan_read4>
    1247:\tvmovss (%rcx,%rax,4),%xmm0
    124c:\tvaddss (%rbx),%xmm0,%xmm0
    1251:\tidiv   %ecx
    1253:\tcall   2000 <expf@plt>
    1258:\tcall   4350 <__sanitizer_cov_trace_pc>
    125d:\tinc    %eax
    125f:\tret
0000000000001270 <other>:
    1270:\tadd    $0x1,%eax
"""


def test_weights_leave_out_copies_spills_and_instrumentation():
    blocks = read_blocks(LISTING)
    assert set(blocks) == {0x1236, 0x125D}
    assert {block.function for block in blocks.values()} == {0x1230}
    assert 0 < blocks[0x125D].weight <= 1
    # address, load, load and add, division, exponential: the last two cost as much as many instructions
    assert 25 < blocks[0x1236].weight < 45
    copies = "    1250:\tmov    %rax,%rbx\n    1250:\tmov    %rax,0x8(%rsp)\n    1250:\tnop\n    1251:\tidiv"
    assert read_blocks(LISTING.replace("    1251:\tidiv", copies)) == blocks


def test_instructions_of_narrower_units_are_told_apart():
    added = """    1253:\tpopcnt %eax,%eax
    1253:\tvdivss %xmm1,%xmm0,%xmm0
    1253:\tvfmadd231sd %xmm1,%xmm0,%xmm0
    1253:\txor    %eax,%eax
    1253:\trol    $0x7,%eax
    1253:\tcall   2000 <expf@plt>"""
    block = read_blocks(LISTING.replace("    1253:\tcall   2000 <expf@plt>", added))[0x1236]
    assert (block.special, block.divisions, block.functions) == (3.0, 1.0, 1.0)
    assert block.doubles == 1.0
    plain = read_blocks(LISTING.replace("    1253:\tcall   2000 <expf@plt>\n", ""))[0x1236]
    assert (plain.special, plain.divisions, plain.functions, plain.doubles) == (0.0, 0.0, 0.0, 0.0)


def test_a_block_that_only_tells_of_a_failed_check_is_none():
    failed = "    125d:\tcall   3790 <__ubsan_handle_out_of_bounds>\n    125d:\tinc"
    assert set(read_blocks(LISTING.replace("    125d:\tinc", failed))) == {0x1236}


@pytest.mark.parametrize("compiler", ["clang++-22", "g++"])
def test_a_loop_counts_as_often_as_the_slowest_lane_runs_it(record, compiler):
    source = """__global__ void k(const float* x, float* out, int n) {
      float s = 0;
      for (int i = 0; i < n * (threadIdx.x == 3 ? 10 : 1); i++) s = s * 0.5f + x[i];
      out[threadIdx.x] = s;
    }"""
    counts = {
        n: record(source, "k", 2, 32, x=np.zeros(4000, "f4"), out=np.zeros(32, "f4"), n=n, compiler=compiler)
        .launches[0]
        .warp_instructions
        for n in (100, 200)
    }
    per_iteration = (counts[200] - counts[100]) / (2 * 1000)
    assert 3 <= per_iteration <= 15


def test_a_recording_counts_the_instructions_of_narrower_units(record):
    source = """__global__ void k(const unsigned* x, float* out, int n) {
      unsigned bits = 0;
      for (int i = 0; i < n; i++) bits += __popc(x[i * 32 + threadIdx.x]);
      out[threadIdx.x] = 1.0f / bits;
    }"""
    made = record(source, "k", 2, 64, x=np.ones(4000, "u4"), out=np.zeros(64, "f4"), n=100).launches[0]
    assert made.arithmetic.special == pytest.approx(2 * 2 * 101, rel=0.05)
    assert made.arithmetic.divisions == pytest.approx(4)
    assert made.arithmetic.doubles == made.arithmetic.functions == 0.0


def test_lines_that_deal_in_vector_types():
    source = "const float4* __restrict__ p4;\nx = p4[i];\nfloat y = q[i];\nv = *(const double2*)q;\nuchar4 c;"
    assert vector_sizes(source) == {1: 16, 2: 16, 4: 16, 5: 4}


def test_packs_with_an_alignment_of_their_own_are_vector_types():
    pack = "template <typename T, int N>\nstruct alignas(sizeof(T) * N) pack { T v[N]; };\n"
    loose = "template <typename T, int N> struct loose { T v[N]; };\n"
    used = "a = *(pack<float, 4> *)p;\nb = *(loose<float, 4> *)p;\nc = *(pack<unsigned char, 8> *)q;"
    assert vector_sizes(pack + loose + used) == {4: 16, 6: 8}


def row(address, line=2, requests=4.0, kind="read"):
    counts = dict.fromkeys(
        (
            "requests",
            "lanes",
            "sectors",
            "unique_sectors",
            "wavefronts",
            "serial",
            "max_same",
            "block_sectors",
            "lines",
        ),
        0.0,
    )
    counts |= {"requests": requests, "lanes": requests * 32, "sectors": 64.0, "first_address": address}
    return Row(line, "global", kind, 4, "x", counts)


def test_only_aligned_neighbours_that_ran_alike_are_joined():
    whole = merge_wide([row(32 + 4 * i) for i in range(4)], {2: 16})
    assert [(r.bytes, r.counts["requests"], r.counts["sectors"]) for r in whole] == [(16, 4.0, 64.0)]
    assert len(merge_wide([row(36 + 4 * i) for i in range(4)], {2: 16})) == 4  # not aligned
    assert len(merge_wide([row(32 + 4 * i) for i in range(4)], {})) == 4  # scalars
    assert len(merge_wide([row(32 + 4 * i) for i in range(3)], {2: 16})) == 3  # one is missing
    assert len(merge_wide([row(32 + 4 * i, requests=1.0 + i) for i in range(4)], {2: 16})) == 4
    assert len(merge_wide([row(32 + 4 * i, kind="atomic") for i in range(4)], {2: 16})) == 4
