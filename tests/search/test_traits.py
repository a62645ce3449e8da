"""What tells kernels apart, from what they compute and from the form of their source."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Expr, Fold, Load, Number, Op
from fsr.features.schema import Features, Source
from fsr.records import Basis, Outcome, Status, Timing
from fsr.runs.kernel import Kernel, load_kernel
from fsr.search.prior import difference
from fsr.search.proposal import Rules
from fsr.search.traits import Traits, traits

EXAMPLES = Path(__file__).parents[2] / "examples"


def at(*names: str) -> tuple[Number, ...]:
    return tuple(Number(Affine(((name, 1),)), "int64") for name in names)


def load(buffer: str, *indices: Expr) -> Load:
    return Load(buffer, indices, "float32")


def contraction(k: str = "K") -> Computation:
    body = Op("prod", (load("A", *at("i", "k0")), load("B", *at("k0", "j"))))
    value = Fold("sum", (("k0", Affine(((k, 1),))),), body)
    buffers = (Buffer("A", "float32", ("M", k)), Buffer("B", "float32", (k, "N")), Buffer("C", "float32", ("M", "N")))
    domain = (("i", "M"), ("j", "N"))
    return Computation(("M", "N", k), buffers, (Statement("fold", "C", domain, value, at("i", "j")),))


def outcome(time_ns: float = 1e6) -> Outcome:
    features = Features(Source(launches=1, threads_per_block=256, grid_threads=1 << 20))
    return Outcome(Status.CORRECT, "tests", timing=Timing(Basis.PREDICTED, time_ns, (time_ns,)), features=features)


@pytest.fixture(scope="module")
def gemm() -> Kernel:
    return load_kernel(EXAMPLES / "gemm.cu")


def of(kernel: Kernel, computation: Computation | None) -> Traits:
    return traits(Rules(kernel.contract, computation=computation), kernel.baseline, outcome())


def test_a_contraction_is_told_by_what_it_computes(gemm: Kernel) -> None:
    sizes = gemm.contract.timed_sizes()[0]
    found = of(gemm, contraction())
    points, length = sizes["M"] * sizes["N"], sizes["K"]
    assert {name: found[name] for name in ("kinds", "folds", "dimensions", "contraction", "gather")} == {
        "kinds": "fold", "folds": "sum", "dimensions": 2.0, "contraction": 1.0, "gather": 0.0,
    }  # fmt: skip
    assert 2.0 ** float(found["points"]) == pytest.approx(points, rel=0.2)
    assert 2.0 ** float(found["fold length"]) == pytest.approx(length, rel=0.2)
    elements = points + length * (sizes["M"] + sizes["N"])
    assert 2.0 ** float(found["reuse"]) == pytest.approx(2.0 * points * length / elements, rel=0.2)


def test_data_that_decides_on_places_and_steps_in_time_are_seen(gemm: Kernel) -> None:
    gather = load("table", Load("ids", at("i"), "int32"))
    buffers = (Buffer("table", "float32", ("M",)), Buffer("ids", "int32", ("N",)), Buffer("C", "float32", ("N",)))
    found = of(gemm, Computation(("M", "N"), buffers, (Statement("map", "C", (("i", "N"),), gather, at("i")),)))
    assert (found["gather"], found["contraction"], found["folds"]) == (1.0, 0.0, "")


def test_without_its_computation_the_form_is_known(gemm: Kernel) -> None:
    found = of(gemm, None)
    assert "folds" not in found
    assert (found["dtype"], found["block"], found["threads"], found["barriers"]) == ("float32", 8.0, 20.0, 0.0)
    assert float(found["loop depth"]) >= 1.0


def test_names_of_the_source_are_not_in_it(gemm: Kernel) -> None:
    text = json.dumps([of(gemm, contraction()), of(gemm, None)])
    assert gemm.contract.entry not in text
    named = replace(contraction("secret_size"), sizes=("M", "N", "secret_size"))
    assert "secret" not in json.dumps(of(gemm, named))  # a size that the contract does not know counts as 1


def test_like_kernels_are_nearer_than_others() -> None:
    found = {}
    for name in ("softmax", "layer_norm", "transpose", "saxpy", "scale_bias"):
        kernel = load_kernel(EXAMPLES / f"{name}.cu")
        found[name] = traits(Rules(kernel.contract), kernel.baseline, outcome())
    assert difference(found["softmax"], found["layer_norm"]) < difference(found["softmax"], found["transpose"])
    assert difference(found["saxpy"], found["scale_bias"]) < difference(found["saxpy"], found["softmax"])


def test_more_room_over_the_bytes_that_move_is_another_kernel(gemm: Kernel) -> None:
    rules = Rules(gemm.contract)
    slow, fast = (traits(rules, gemm.baseline, outcome(t)) for t in (1e9, 1e6))
    assert float(slow["room"]) == pytest.approx(float(fast["room"]) + 10.0, abs=0.5)
