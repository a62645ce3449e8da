"""The instruction mix from nvdisasm's text."""

from fsr.features.instructions import mix, opcodes_of
from fsr.features.schema import Binary

SASS = """
//--------------------- .text.other                   --------------------------
\t.section\t.text.other,"ax",@progbits
        /*0000*/                   DADD R2, R2, R4 ;
//--------------------- .text.k                   --------------------------
\t.section\t.text.k,"ax",@progbits
\t.align\t128
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   IMAD R9, R9, UR4, R2 ;
        /*0070*/               @P0 EXIT ;
        /*0080*/                   LDG.E.128 R4, desc[UR6][R4.64] ;
        /*0090*/              @!P1 LDG.E.U8 R4, desc[UR6][R4.64] ;
        /*00a0*/                   FFMA R6, R4, R5, R6 ;
        /*00b0*/                   HMMA.16816.F32 R4, R8, R2, R4 ;
        /*00c0*/                   STL [R1], R6 ;
        /*00d0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00e0*/                   STG.E desc[UR6][R2.64], R13 ;
.L_x_0:
        /*00f0*/                   BRA `(.L_x_0);
        /*0100*/                   NOP;
"""


def test_only_the_kernel_asked_for_is_read() -> None:
    assert list(opcodes_of(SASS, "other")) == ["DADD"]
    assert mix(SASS, "none") == Binary()


def test_instructions_are_shared_out_among_kinds_and_padding_is_none() -> None:
    found = mix(SASS, "k")
    assert found.instructions == 11
    assert found.memory_share == 5 / 11
    assert found.control_share == 3 / 11
    assert (found.float_share, found.tensor_share, found.integer_share) == (1 / 11, 1 / 11, 1 / 11)
    assert found.local_accesses == 1


def test_widths_are_of_global_accesses_only() -> None:
    found = mix(SASS, "k")
    assert found.access_bytes == (16 + 1 + 4) / 3
    assert found.wide_share == 1 / 3
