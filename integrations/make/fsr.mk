# Winners of fsr in makefiles: `include fsr.mk` and compile with $(NVCC).
#
# FSR_LAUNCH=off|verbose|queue in the environment says what fsr-launch does (docs/builds.md); without fsr-launch on the
# PATH, NVCC is nvcc.
FSR_LAUNCHER := $(shell command -v fsr-launch)
NVCC := $(FSR_LAUNCHER) nvcc
