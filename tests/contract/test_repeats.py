"""Launches that a plan makes several times: stated, checked, counted out, and told apart from those made once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fsr.contract.load import load_contract
from fsr.contract.model import Contract, concrete_launches
from fsr.contract.show import contract_block, with_block
from fsr.contract.validate import validate
from fsr.errors import ContractError
from fsr.identity import candidate_hash, plan_from_json, to_json
from fsr.records import Candidate, Launch, Plan, Role, ScalarArgument, ScalarValue
from fsr.source.file import KernelFile
from fsr.testgen.legal import illegal

TEXT = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 1, max = 64, timed = 64}
// t = {min = 0, max = 90, timed = 40}
// [args]
// y = {role = "inout", shape = ["n"]}
// n = {value = "n"}
// [[launch]]
// entry = "k"
// grid = 1
// block = "n"
// repeat = "t"
// args = ["y", "n", "2 * step + 1"]
// ///
__global__ void k(float *y, int n, int odd) { y[threadIdx.x] += odd; }
"""


def contract_of(*changes: tuple[str, str]) -> Contract:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return load_contract(KernelFile.from_text(text))


def scalars(contract: Contract, sizes: dict[str, int]) -> dict[str, ScalarValue]:
    own = (a for a in contract.args if a.role is Role.SCALAR)
    return {a.name: ScalarValue(a.dtype, sizes[a.value or ""]) for a in own}


def passed(contract: Contract, t: int, *, some: bool = False) -> list[tuple[object, int]]:
    """What each launch passes last, and how many it stands for."""
    sizes = {"n": 5, "t": t}
    made = concrete_launches(contract.plan, contract, sizes, scalars(contract, sizes), some=some)
    return [(one.args[-1], one.times) for one in made]


def test_each_repetition_is_a_launch_with_its_own_number() -> None:
    contract = contract_of()
    assert passed(contract, 3) == [(ScalarValue("int32", odd), 1) for odd in (1, 3, 5)]
    assert passed(contract, 0) == []
    assert passed(contract, 1) == [(ScalarValue("int32", 1), 1)]


@pytest.mark.parametrize("t", range(8))
def test_some_stand_for_all(t: int) -> None:
    found = passed(contract_of(), t, some=True)
    assert len(found) <= 2
    assert sum(times for _, times in found) == t
    assert set(dict(found)) <= set(dict(passed(contract_of(), t)))


def test_a_contract_that_repeats_is_shown_as_it_is_read() -> None:
    contract = contract_of()
    assert '// repeat = "t"\n' in contract_block(contract)
    again = load_contract(KernelFile.from_text(with_block(TEXT, contract)))
    assert again.plan == contract.plan
    plain = contract_of(('// repeat = "t"\n', ""), ("2 * step + 1", "3"))
    assert "repeat" not in contract_block(plain)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('repeat = "t"', 'repeat = "t - 1"'), "launched -1 times"),
        (('repeat = "t"', 'repeat = "t * t * t"'), "launched 729,000 times"),
        (('repeat = "t"', 'repeat = "u"'), "names 'u'"),
        (('// repeat = "t"\n', ""), "names 'step'"),
        (("2 * step", "2 * stop"), "names 'stop'"),
        (("// t = {", "// step = {min = 1, max = 2}\n// t = {"), "a size is called 'step'"),
    ],
)
def test_what_cannot_be_repeated_is_told(change: tuple[str, str], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        contract_of(change)


def test_one_repetition_may_be_numbered_like_several() -> None:
    """As the last of launches that are repeated less and less often."""
    once = contract_of(('repeat = "t"', "repeat = 1"))
    assert [x.args[2].value for x in once.plan.launches] == ["2 * 0 + 1"]  # type: ignore[union-attr]
    assert not once.plan.launches[0].repeated


RESHAPED = (("grid = 1", 'grid = "ceil_div(t - 2 * step, 4)"'), ('block = "n"', 'block = "min(n, step + 1)"'))


@pytest.mark.parametrize("t", range(10))
def test_each_repetition_may_have_a_shape_of_its_own(t: int) -> None:
    contract = contract_of(*RESHAPED)
    sizes = {"n": 5, "t": t}
    own = scalars(contract, sizes)
    made = concrete_launches(contract.plan, contract, sizes, own)
    expected = {s: (-(-(t - 2 * s) // 4), min(5, s + 1)) for s in range(t) if t > 2 * s}
    assert [(one.grid[0], one.block[0]) for one in made] == list(expected.values())
    assert [one.args[-1] for one in made] == [ScalarValue("int32", 2 * s + 1) for s in expected]
    some = concrete_launches(contract.plan, contract, sizes, own, some=True)
    assert sum(one.times for one in some) == len(made)
    assert {one.grid for one in some} == {one.grid for one in made}


def test_the_shape_of_the_last_repetition_is_checked_too() -> None:
    with pytest.raises(ContractError, match="threads at"):
        contract_of(('block = "n"', 'block = "1 + 40 * step"'))
    with pytest.raises(ContractError, match="names 'step'"):
        contract_of(('block = "n"', 'block = "n + step"'), ('// repeat = "t"\n', ""), ("2 * step + 1", "3"))
    contract = contract_of()
    (launch,) = contract.plan.launches
    fault = illegal(
        contract, Candidate("", Plan((replace(launch, shared_bytes="step * 4096"),))), contract.plan, 1 << 16
    )
    assert fault is not None
    assert "shared memory" in fault.detail


def test_a_candidate_that_repeats_too_often_is_not_launched() -> None:
    contract = contract_of()
    (launch,) = contract.plan.launches
    assert illegal(contract, Candidate("", contract.plan), contract.plan, 1 << 16) is None
    often = Plan((replace(launch, repeat="t * t * t"),))
    fault = illegal(contract, Candidate("", often), contract.plan, 1 << 16)
    assert fault is not None
    assert "times" in fault.detail
    with pytest.raises(ContractError):
        validate(replace(contract, plan=often))


def test_plans_from_before_keep_their_name_and_load() -> None:
    once = Launch("k", ("1", "1", "1"), ("n", "1", "1"), "0", ("y", "n", ScalarArgument("int32", "1")))
    data = to_json(Plan((once,)))
    assert isinstance(data, dict)
    assert "repeat" not in str(data), "as it was written before there were repetitions"
    assert plan_from_json(data) == Plan((once,))
    # The hash of this candidate as it was before launches could be repeated.
    assert candidate_hash(Candidate("k", Plan((once,)))) == "f1c5ed3a94cdbf40c31838"
    again = Plan((replace(once, repeat="t"),))
    assert plan_from_json(to_json(again)) == again
    assert candidate_hash(Candidate("k", again)) != candidate_hash(Candidate("k", Plan((once,))))
