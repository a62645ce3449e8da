"""A process keeps the memory that it frees, and gives back what is too much."""

import subprocess
import sys

import pytest

MEASURE = """
import resource, sys
import numpy
from fsr.workers.memory import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
numpy.ones(8 << 20, numpy.float64)
before = faults()
for _ in range(8):
    numpy.ones(8 << 20, numpy.float64)
print(faults() - before)
"""


def faults(how: str) -> int:
    answer = subprocess.run([sys.executable, "-c", MEASURE, how], capture_output=True, text=True, check=True)
    return int(answer.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_arrays_of_one_size_are_made_of_the_same_pages():
    assert faults("kept") * 10 < faults("given back")
