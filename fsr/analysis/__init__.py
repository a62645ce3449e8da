"""What can be shown about a kernel from its form alone. Every answer is conservative: None or False means that it
could not be shown, never that the opposite holds. Contract inference and all actions ask here.

Values
- polynomial: integer expressions as polynomials over symbols
- definitions: locals set once, their types, and writing them out
- types, conditions, macros: types of expressions; opposites, bounds; macros and constants of the file
- ranges, reach, shapes: which elements an index runs over, and the row-major shape they have

Functions
- calls: CUDA's functions that only compute, load, or update atomically
- functions: what the file's own functions and macros do

Memory
- aliasing: which buffers may share memory
- accesses: every access of an array, with its loops and conditions; the one record of it
- effects: the same where all pointers can be followed, by the memory behind them
- point_accesses: the same for a map over points, indices in its ids
- elements: neighbouring elements, and what is accessed in every iteration

Loops
- accumulators, extremes, operators: what a loop folds into a variable, and where an extreme was found
- dependence, parallel: may the iterations run in any order

Threads
- threads, guards, domain: global ids, the conditions on them, kernels as maps over points
- uniform: what all threads of a block agree on
- collective: which device functions combine a value over the block
"""
