// Sums of f16, bf16 and pairs of them in memory.
#pragma once
#include "ptx_halves.h"
#include "ptx_updates.h"

namespace fsr_ptx {

template <>
struct Added<__half> {
  static __half sum(const __half*, __half a, __half b) { return halves::add_(a, b); }
};
template <>
struct Added<__nv_bfloat16> {
  static __nv_bfloat16 sum(const __nv_bfloat16*, __nv_bfloat16 a, __nv_bfloat16 b) { return halves::add_(a, b); }
};
template <class H>
struct Added<Both<H>> {
  static Both<H> sum(const Both<H>*, Both<H> a, Both<H> b) { return halves::add_(a, b); }
};

}  // namespace fsr_ptx
