"""Mutants: a right candidate with one fault planted in it, to measure what the tests would notice.

- ``mutants.mutants(candidate) -> list[Mutant]``: every fault that an operator can plant, each once
- ``mutants.sampled(found, count, seed)``: some of them, every operator's turn after turn
"""
