import numpy as np
import pytest

from fsr.hardware.c_types import BY_DTYPE, BY_SPELLING, LANES, NUMBERS, dtype_bytes, element_bytes
from fsr.hardware.dtypes import numpy_dtype


@pytest.mark.parametrize("dtype", BY_DTYPE)
def test_sizes_are_those_of_numpy(dtype) -> None:
    assert numpy_dtype(dtype).itemsize == BY_DTYPE[dtype].bytes


def test_every_name_stands_for_one_type() -> None:
    names = [name for t in BY_DTYPE.values() for name in (t.spelling, *t.others)]
    assert len(names) == len(set(names)) == len(BY_SPELLING)


@pytest.mark.parametrize(
    ("spelling", "dtype", "size"),
    [("float", "float32", 4), ("unsigned", "uint32", 4), ("size_t", "uint64", 8), ("half", "float16", 2),
     ("char", "int8", 1), ("long", "int64", 8), ("uint", "uint32", 4)],
)  # fmt: skip
def test_c_names_lead_to_type_and_size(spelling, dtype, size) -> None:
    assert BY_SPELLING[spelling].dtype == dtype
    assert element_bytes(spelling) == dtype_bytes(dtype) == size


def test_bool_and_unknown_types_have_no_size_to_move_by() -> None:
    assert element_bytes("bool") is dtype_bytes("bool") is element_bytes("float4") is dtype_bytes("complex64") is None


def test_vectors_have_lanes() -> None:
    assert LANES["float4"] == (BY_DTYPE["float32"], 4)
    assert LANES["__nv_bfloat162"] == (BY_DTYPE["bfloat16"], 2)


def test_only_what_is_no_built_in_type_needs_a_header() -> None:
    assert {t.dtype for t in NUMBERS if t.header} == {"float16", "bfloat16"}
    assert np.dtype(BY_SPELLING["int"].dtype).kind == "i"
