"""Generated tests: sizes, values, oracle, comparison, shrinking, mutants.

The interfaces that evaluation uses:

- ``cases.smoke(contract, seed) -> Case``; ``cases.search(contract, candidate, seed) -> list[Case]``;
  ``cases.held_out(contract, seed) -> list[Case]``; ``cases.timed(contract, seed) -> list[Case]``;
  ``cases.held_out_timed(contract, seed) -> list[Case]``
- ``values.build(contract, case) -> CaseData``: arrays (inputs, and poisoned outputs) and scalars
- ``oracle``: expected results and their uncertainty; ``compare``: verdict an element
- ``shrink.shrink(case, fails) -> Case``
"""
