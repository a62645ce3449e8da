"""The host device: runs CUDA kernels compiled for the CPU, exactly, in a contained child process."""
