"""The daemon of fsr: watches folders of kernels and refines what is saved there while the machine has time."""
