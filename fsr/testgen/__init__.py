"""Generated tests: sizes, values, oracle, comparison and shrinking.

The interfaces that evaluation uses:

- ``cases``: ``smoke``, ``search_cases``, ``held_out_cases``, ``timed_cases``, ``held_out_timed_cases`` and
  ``held_out_timed_sizes``, all pure functions of a contract and a seed
- ``values.build(contract, case, poison_seed) -> CaseData``: arrays (inputs, and poisoned outputs) and scalars
- ``placing.place(contract, plan, case, data) -> (launches, buffers)``: what a device is given
- ``oracle.expect(contract, case, run, precise=...) -> Expected``: the original's answer and its uncertainty
- ``widen.widen_candidate(candidate) -> Candidate | None``: the original in float64, for the precise answer
- ``compare.compare(contract, case, got, expected, initial) -> list[Mismatch]``: verdict an element
- ``shrink.shrink(case, fails) -> Case``
"""
