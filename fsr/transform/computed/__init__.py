"""Kernels written from what is computed: schedules that do not depend on how the original was written."""
