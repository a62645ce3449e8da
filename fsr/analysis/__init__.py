"""What can be shown about a kernel from its form alone. Every answer is conservative: None or False means that it
could not be shown, never that the opposite holds.

- definitions: locals set once, their types, and writing them out
- affine: integer expressions as polynomials over symbols
- threads: global ids, guards
- accesses: every array access with its loops and conditions
- reductions: accumulators of loops
- dependence: may the iterations of a loop run in any order
- uniform: what all threads of a block agree on
- collective: which device functions combine a value over the block
- functions: which functions and macros concern the calling thread alone
- calls: which functions only compute
"""
