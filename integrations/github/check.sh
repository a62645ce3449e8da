#!/bin/bash
# What action.yml runs: FSR_KERNELS, and FSR_BUNDLE with FSR_TRUST or FSR_CACHE_INPUT.
set -euo pipefail

if [ -n "${FSR_CACHE_INPUT:-}" ]; then
    export FSR_CACHE=$FSR_CACHE_INPUT
fi
if [ -n "${FSR_BUNDLE:-}" ]; then
    fsr cache trust action "$FSR_TRUST"
    fsr cache import "$FSR_BUNDLE"
fi
# shellcheck disable=SC2086  # files and folders, separated by spaces
fsr lookup --unused $FSR_KERNELS
