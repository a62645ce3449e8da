// PTX's wgmma: sums of a warpgroup in registers, factors in shared memory. The functions stand in for asm statements:
// see fsr/backends/host/ptx/. Layouts: PTX ISA 8.7, "Asynchronous Warpgroup Level Matrix Instructions".
#pragma once
#include "ptx_memory.h"
#include "wmma.h"

namespace fsr_ptx {

using namespace nvcuda::wmma;
namespace detail = nvcuda::wmma::fsr_detail;

inline void wgmma_fence() { fsr_group_fence(); }
inline void wgmma_commit() { fsr_group_commit(); }
inline void wgmma_wait(unsigned prior, int line = __builtin_LINE()) { fsr_group_wait(prior, line); }

// A matrix in shared memory as a descriptor tells of it: 16 bytes (`run` elements along the dimension that is contiguous)
// are a word; `outer` counts rows of A, columns of B. `across`: outer is the contiguous dimension.
struct Matrix {
  uint32_t start, leading, stride, wide;  // wide: bytes of a row of the swizzle, 16 without
  FSR_PART_OF_IT Matrix(unsigned long long d, int line) {
    start = (uint32_t)(d & 0x3fff) << 4, leading = (uint32_t)(d >> 16 & 0x3fff) << 4;
    stride = (uint32_t)(d >> 32 & 0x3fff) << 4;
    unsigned mode = (unsigned)(d >> 62);
    wide = mode ? 256u >> mode : 16u;
    if (d >> 49 & 7) fsr_unsupported("a matrix descriptor with a base offset", line);
    if (d >> 46 & 7 || d >> 52 & 0x3ff) fsr_trap("a matrix descriptor with bits set that have no meaning", line);
  }
  // Of element 0 of word `word` along the contiguous dimension, in line `line` of the other.
  FSR_PART_OF_IT uint32_t place(unsigned line, unsigned word, bool across) const {
    unsigned words = wide / 16;  // of a row of the swizzle
    uint32_t at = start + line % 8 * wide;
    if (words == 1)
      at += across ? word * stride + line / 8 * leading : line / 8 * stride + word * leading;
    else
      at += line / 8 * stride + word % words * 16 + (across ? word / words * leading : word / words * wide * 8);
    return (at ^ ((at >> 7 & (words - 1)) << 4)) & 0x3ffff;
  }
};

// outer x 16 elements as numbers: of a word each `run` lie along the folded dimension, or across it.
template <int outer, bool across, class T>
FSR_PART_OF_IT void read_factor(float* to, int pitch_outer, int pitch_inner, Matrix m, int first, int line) {
  constexpr int run = 16 / (int)sizeof(T), depth = 16;
  constexpr int lines = across ? depth : outer, words = (across ? outer : depth) / run;
  for (int l = 0; l < lines; l++)
    for (int w = 0; w < words; w++) {
      unsigned at = across ? l : first + l, word = across ? first / run + w : w;
      auto from = reinterpret_cast<const T*>(fsr_group_word(m.place(at, word, across), line));
      for (int e = 0; e < run; e++)
        to[(across ? w * run + e : l) * pitch_outer + (across ? l : w * run + e) * pitch_inner] = detail::Factor<T>::of(from[e]);
    }
}

// Tells the recorder what a lane reads of outer x 16 elements, `parts` warps sharing them.
template <int outer, bool across, class T>
FSR_PART_OF_IT void note_factor(Matrix m, int first, int part, int parts, int line, const void* caller) {
#ifdef FSR_RECORD
  constexpr int run = 16 / (int)sizeof(T), lines = across ? 16 : outer, words = (across ? outer : 16) / run;
  for (int n = part * 32 + (int)fsr_lane(); n < lines * words; n += 32 * parts) {
    unsigned at = n / words, word = n % words;
    uint32_t place = across ? m.place(at, first / run + word, true) : m.place(first + at, word, false);
    fsr_note_plain(fsr_dynamic_shared + place, 16, FSR_LOAD, line, caller);
  }
#endif
}

// A warp's share of a product, of 16 rows; that of a warp's tensor core at the full rate, which mma_sync does not reach
// (fsr/hardware/gpus.py: mma_share).
struct Part {
  float* sums;
  const B32* factor;
  bool keep, done;
};
constexpr double kShareOfMma = 0.62;

// Whether sums are added to (scale-d), the sign of the products (imm-scale-a times imm-scale-b), and this lane's four words
// of A where that is in registers.
struct Way {
  bool keep = true;
  float sign = 1;
  B32 words[4] = {};
};

template <class T, int n, bool a_across, bool b_across, bool registers>
FSR_ONE_INSTRUCTION void fsr_product(float* const* places, unsigned long long a, unsigned long long b, const Way& way, int line) {
  using A = detail::Shape<matrix_a, 16, n, 16, T>;
  using C = detail::Shape<accumulator, 16, n, 16, float>;
  Matrix left(registers ? b : a, line), right(b, line);
  int warp = (int)(fsr_thread / 32 % 4);
  if (!registers) note_factor<16, a_across, T>(left, 16 * warp, 0, 1, line, __builtin_return_address(0));
  note_factor<n, b_across, T>(right, 0, warp, 4, line, __builtin_return_address(0));
  Part own{fsr_group_sums(places, n / 2, line), way.words, way.keep, false};
  Part* at = &own;
  const fsr_post* posts = fsr_warp_exchange(&at, sizeof at, 0xffffffffu, line);
  if (*(volatile bool*)&own.done) return;
  Part* parts[32];
  for (int lane = 0; lane < 32; lane++) {
    __builtin_memcpy(&parts[lane], posts[lane].bytes, sizeof at);
    if ((uintptr_t)parts[lane] == 0xFBFBFBFBFBFBFBFBull) fsr_trap("wgmma.mma_async by fewer than the 32 lanes of a warp", line);
  }
  fsr_note_tensor(2.0 * 16 * n * 16 * kShareOfMma);
  float rows[16][16];
  alignas(32) float columns[16][n], sums[16][n];
  if (!registers) read_factor<16, a_across, T>(&rows[0][0], 16, 1, left, 16 * warp, line);
  for (int lane = 0; registers && lane < 32; lane++) {
    T elements[8];
    __builtin_memcpy(elements, parts[lane]->factor, sizeof elements);
    for (int e = 0; e < 8; e++) rows[A::row(e, lane)][A::column(e, lane)] = detail::Factor<T>::of(elements[e]);
  }
  read_factor<n, b_across, T>(&columns[0][0], 1, n, right, 0, line);
  for (int lane = 0; lane < 32; lane++)
    for (int e = 0; e < C::own; e++)
      sums[C::row(e, lane)][C::column(e, lane)] = parts[lane]->keep ? parts[lane]->sums[e] : 0.0f;
  for (int i = 0; i < 16; i++)
    for (int l = 0; l < 16; l++) detail::add_row<n>(sums[i], way.sign * rows[i][l], columns[l]);
  for (int lane = 0; lane < 32; lane++) {
    for (int e = 0; e < C::own; e++) parts[lane]->sums[e] = sums[C::row(e, lane)][C::column(e, lane)];
    parts[lane]->done = true;
  }
}
template <class T, int n, bool a_across, bool b_across>
FSR_ONE_INSTRUCTION void fsr_product_of_run(float* first, unsigned long long a, unsigned long long b, const Way& way, int line) {
  float* places[n / 2];
  for (int i = 0; i < n / 2; i++) places[i] = first + i;
  fsr_product<T, n, a_across, b_across, false>(places, a, b, way, line);
}

// wgmma.mma_async of factors of 16 bits: sums += left * right. `first`: neighbours in memory, or the places one by one.
template <class T, int n, bool a_across, bool b_across>
inline __attribute__((always_inline)) void wgmma(float* first, unsigned long long a, unsigned long long b,
                                                 Way way = {}, int line = __builtin_LINE()) {
  static_assert(n % 8 == 0 && n >= 8 && n <= 256, "wgmma.mma_async: n is a multiple of 8 from 8 to 256");
  fsr_product_of_run<T, n, a_across, b_across>(first, a, b, way, line);
}
template <class T, int n, bool a_across, bool b_across>
inline __attribute__((always_inline)) void wgmma(float* const (&places)[n / 2], unsigned long long a,
                                                 unsigned long long b, Way way = {}, int line = __builtin_LINE()) {
  static_assert(n % 8 == 0 && n >= 8 && n <= 256, "wgmma.mma_async: n is a multiple of 8 from 8 to 256");
  fsr_product<T, n, a_across, b_across, false>(places, a, b, way, line);
}
// A in registers.
template <class T, int n, bool b_across>
inline __attribute__((always_inline)) void wgmma(float* const (&places)[n / 2], unsigned long long b, Way way,
                                                 int line = __builtin_LINE()) {
  static_assert(n % 8 == 0 && n >= 8 && n <= 256, "wgmma.mma_async: n is a multiple of 8 from 8 to 256");
  fsr_product<T, n, false, b_across, true>(places, 0, b, way, line);
}

}  // namespace fsr_ptx
