"""``fsr bench``: a suite of kernels, each refined and timed side by side with its original and its peers."""
