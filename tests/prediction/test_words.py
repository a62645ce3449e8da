import math

import pytest

from fsr.hardware.gpus import H200
from fsr.prediction.predict import predict
from fsr.prediction.words import duration, explain, line_remarks, site_words
from fsr.records import Resources

N = 1 << 22
SOURCE = "__global__ void k(const float* x, float* y) {\n  int row = threadIdx.x;\n  y[0] += x[row * 1024];\n}\n"


def test_the_report_names_causes_lines_and_code(make) -> None:
    profile = make.profile(make.launch([make.site(N, 32)], blocks=16, threads=256))
    text = explain(predict(profile, {}, H200, 4.0 * N), H200, SOURCE)
    assert text.startswith("predicted ")
    assert "NVIDIA H200" in text
    assert "uncoalesced: " in text
    assert "only 16 of 132 SMs get a block" in text
    assert "line 3: reads 'x', 4 bytes a thread: 32.0 sectors of 32 bytes a request, 4 would do" in text
    assert "y[0] += x[row * 1024];" in text


def test_lines_are_told_heaviest_first_and_light_ones_left_out(make) -> None:
    heavy, light = make.site(N, 32, line=7), make.site(N, 8, line=2)
    tiny = make.site(32, 4, line=9)
    found = line_remarks(predict(make.profile(make.launch([light, tiny, heavy])), {}, H200, 8.0 * N).launches[0])
    assert [remark.line for remark in found] == [7, 2]
    assert found[0].weight > 0.5


def test_a_coalesced_line_is_praised_and_its_source_of_data_told(make) -> None:
    traffic = predict(make.profile(make.launch([make.site(N, 4)])), {}, H200, 4.0 * N).launches[0].traffic
    words = site_words(traffic[0].site, traffic[0])
    assert "coalesced" in words
    assert "16.8 MB come from DRAM" in words


def test_the_l1_is_named_when_it_serves(make) -> None:
    site = make.site(64 * N, 1, unique_sectors=N / 64, block_sectors=N / 64)
    traffic = predict(make.profile(make.launch([site])), {}, H200, 4.0 * N).launches[0].traffic
    assert "the L1 serves nearly all of it" in site_words(site, traffic[0])


@pytest.mark.parametrize(("wavefronts", "told"), [(N / 32, "no conflicts"), (N / 2, "16.0 passes where one would do")])
def test_bank_conflicts_in_words(make, wavefronts, told) -> None:
    assert told in site_words(make.site(N, 0, space="shared", wavefronts=wavefronts))


def test_atomics_in_words(make) -> None:
    hot = make.site(N, 1, kind="atomic", serial=float(N), max_same_address=float(N))
    assert "32.0 lanes of a warp hit one address" in site_words(hot)
    assert "4.19e+06 updates queue" in site_words(hot)


def test_a_launch_that_does_not_fit_says_why(make) -> None:
    profile = make.profile(make.launch([make.site(N, 4)], threads=1024))
    text = explain(predict(profile, {"k": Resources(registers=255)}, H200, 4.0 * N), H200, SOURCE)
    assert "no block fits on an SM: registers are the limit" in text
    assert "forever" in text


@pytest.mark.parametrize(
    ("time_ns", "text"), [(12.0, "12 ns"), (12_345.0, "12.3 us"), (4.567e6, "4.57 ms"), (2e9, "2 s")]
)
def test_durations_are_readable(time_ns, text) -> None:
    assert duration(time_ns) == text
    assert "forever" in duration(math.inf)
