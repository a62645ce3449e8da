"""What becomes of a model's words: a candidate, or the reason why not."""

from __future__ import annotations

import pytest

from fsr.llm.code import edited, file_of, normal_form, strip_notes, whole
from fsr.llm.unusable import Unusable
from fsr.records import Candidate
from fsr.testgen.candidate_file import candidate_of
from tests.llm.kernels import WARP, row_sum

BASE = row_sum().baseline
CONTRACT = row_sum().contract
FENCED = f"Here it is:\n```cuda\n{WARP}```\nIt uses a warp for each row."
EDIT = """<<<<<<< SEARCH
    float sum = 0.0f;
=======
    float sum = 0.0f;  // kept in a register
    #pragma unroll 4
>>>>>>> REPLACE"""


def test_a_candidate_is_shown_as_a_file_from_which_the_same_plan_is_read() -> None:
    file = file_of(BASE)
    assert candidate_of(file, CONTRACT, "x").plan == BASE.plan
    assert strip_notes(file).strip() == BASE.source.strip()


@pytest.mark.parametrize("text", [FENCED, WARP, f"~~~c++\n{WARP}~~~", f"```cuda\n{WARP}", f"```\nold\n```\n{FENCED}"])
def test_a_whole_kernel_is_taken_with_its_launch(text: str) -> None:
    candidate = whole(text, BASE, CONTRACT)
    assert "__shfl_down_sync" in candidate.source
    assert "launch:" not in candidate.source
    assert candidate.plan.launches[0].grid[0] == "ceil_div(rows,2)"
    assert edited(text, BASE, CONTRACT) == candidate


def test_edits_are_applied_where_they_stand_and_keep_the_plan() -> None:
    candidate = edited(EDIT, BASE, CONTRACT)
    assert "#pragma unroll 4" in candidate.source
    assert candidate.plan == BASE.plan
    assert edited(EDIT.replace("    float sum = 0.0f;\n=", "float sum = 0.0f;   \n="), BASE, CONTRACT) == candidate


def with_line(line: str) -> str:
    return FENCED.replace("    float sum = 0.0f;", f"    float sum = 0.0f;\n    {line}")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("unchanged", f"```cuda\n{BASE.source}```"),
        ("unchanged", f"```cuda\n// faster now\n{BASE.source.replace('    ', '  ')}```"),
        ("prose", "I would tile the loop and use shared memory."),
        ("prose", ""),
        ("other language", "```python\nimport triton\n@triton.jit\ndef k(x): pass\n```"),
        ("other language", "```\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) y[i] = x[i];\n```"),
        ("other language", "```cpp\nq.submit([&](sycl::handler &h) { h.parallel_for(n, f); });\n```"),
        ("other language", "```c\n__kernel void k(__global float *x) { x[get_global_id(0)] = 1; }\n```"),
        ("other language", "```julia\nfunction k!(x)\nend\n```"),
        ("wrong entry", FENCED.replace("void row_sum", "void fast")),
        ("wrong entry", "```cuda\nfloat sum = 0.0f;\n```"),
        ("host code", FENCED.replace("```cuda\n", "```cuda\n#include <iostream>\n")),
        ("host code", FENCED.replace("```\nIt", "int main() { row_sum<<<1, 1>>>(0, 0, 0, 0); }\n```\nIt")),
        ("host code", with_line('printf("hello");')),
        ("host code", FENCED.replace("```\nIt", "void f() { cudaMalloc(0, 0); }\n```\nIt")),
        ("does not apply", EDIT.replace("float sum", "double total")),
        ("does not apply", "<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE"),
        ("truncated", EDIT[: EDIT.index(">>>>")]),
        ("bad plan", FENCED.replace("ceil_div(rows,2)", "rows / 2 +")),
        ("bad plan", FENCED.replace("ceil_div(rows,2)", "__import__('os').system('id')")),
        ("bad plan", FENCED.replace("x y rows cols", "x y rows columns")),
        ("bad plan", FENCED.replace(" | 0 | x y rows cols", "")),
        ("too long", "x" * 1_000_000),
    ],
)
def test_what_is_no_candidate_says_why(kind: str, text: str) -> None:
    with pytest.raises(Unusable) as fault:
        edited(text, BASE, CONTRACT)
    assert fault.value.kind == kind


def test_an_edit_that_fits_in_two_places_is_refused() -> None:
    twice = Candidate(BASE.source + BASE.source, BASE.plan)
    with pytest.raises(Unusable, match="2 places"):
        edited(EDIT, twice, CONTRACT)


def test_code_that_differs_by_comments_and_layout_is_the_same() -> None:
    other = Candidate("// new\n" + BASE.source.replace("\n", "\n\n").replace("    ", "\t"), BASE.plan)
    assert normal_form(other) == normal_form(BASE)
    assert normal_form(whole(FENCED, BASE, CONTRACT)) != normal_form(BASE)
