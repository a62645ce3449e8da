"""The service: what is watched becomes jobs, jobs become runs, runs become results beside the kernels."""
