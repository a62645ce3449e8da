"""For all tests: their processes evaluate as workers do, and keep their memory as workers do."""

from fsr.workers.memory import keep_freed_memory

keep_freed_memory()
