"""A thread's small arrays whose elements are chosen by selects, so that they stay in registers."""
