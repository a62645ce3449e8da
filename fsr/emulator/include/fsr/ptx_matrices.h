// PTX's instructions on fragments of a warp. Layouts: PTX ISA 8.7, "Matrix multiply-accumulate Instructions using mma
// Instruction" and "ldmatrix"; sums are rounded as those of wmma are here.
#pragma once
#include "ptx_memory.h"
#include "wmma.h"

namespace fsr_ptx {

namespace wmma_detail = nvcuda::wmma::fsr_detail;

// What the lanes that hold addresses tell all of them: of matrix n, lane 8 * n + r that of row r.
struct Rows {
  unsigned char* at[32];
};
FSR_PART_OF_IT void tell_rows(Rows& rows, unsigned char* own, int line) {
  const fsr_post* posts = fsr_warp_exchange(&own, sizeof own, 0xffffffffu, line);
  for (int lane = 0; lane < 32; lane++) {
    __builtin_memcpy(&rows.at[lane], posts[lane].bytes, sizeof own);
    if ((uintptr_t)rows.at[lane] == 0xFBFBFBFBFBFBFBFBull)
      fsr_trap("ldmatrix or stmatrix by fewer than the 32 lanes of a warp", line);
  }
}

// Recorded is this lane's word of each matrix's row lane / 4, as the elements are fetched also where they are transposed.
template <int count, bool transposed>
FSR_ONE_INSTRUCTION void fsr_load_matrices(B32* to, unsigned char* own, int line) {
  Rows rows;
  tell_rows(rows, own, line);
  int lane = (int)fsr_lane();
  for (int number = 0; number < count; number++) {
    unsigned char* const* row = rows.at + 8 * number;
    const unsigned char* word = row[lane / 4] + lane % 4 * 4;
    fsr_note_plain(word, 4, FSR_LOAD, line, __builtin_return_address(0));
    if constexpr (transposed) {
      B32 low = *reinterpret_cast<const B16*>(row[lane % 4 * 2] + lane / 4 * 2);
      B32 high = *reinterpret_cast<const B16*>(row[lane % 4 * 2 + 1] + lane / 4 * 2);
      to[number] = high << 16 | low;
    } else {
      to[number] = *reinterpret_cast<const B32*>(word);
    }
  }
}
template <int count, bool transposed>
FSR_ONE_INSTRUCTION void fsr_store_matrices(const B32* of, unsigned char* own, int line) {
  Rows rows;
  tell_rows(rows, own, line);
  int lane = (int)fsr_lane();
  for (int number = 0; number < count; number++) {
    unsigned char* const* row = rows.at + 8 * number;
    for (int half = 0; half < (transposed ? 2 : 1); half++) {
      unsigned char* at = transposed ? row[lane % 4 * 2 + half] + lane / 4 * 2 : row[lane / 4] + lane % 4 * 4;
      fsr_note_plain(at, transposed ? 2 : 4, FSR_STORE, line, __builtin_return_address(0));
      if constexpr (transposed)
        *reinterpret_cast<B16*>(at) = (B16)(of[number] >> 16 * half);
      else
        *reinterpret_cast<B32*>(at) = of[number];
    }
  }
}

// Addresses of lanes beyond the matrices' rows are not looked at.
template <int count, Space space, class R>
FSR_INSTRUCTION unsigned char* own_row(R address, long long offset, int line) {
  return (int)fsr_lane() < 8 * count ? place<space>(address, offset, 16, line) : nullptr;
}
template <int count, bool transposed, Space space, class R>
FSR_INSTRUCTION Several<B32, count> ldmatrix(R address, long long offset, int line = __builtin_LINE()) {
  Several<B32, count> found;
  fsr_load_matrices<count, transposed>(found.at, own_row<count, space>(address, offset, line), line);
  return found;
}
template <int count, bool transposed, Space space, class R>
FSR_INSTRUCTION void stmatrix(R address, long long offset, Several<B32, count> values, int line = __builtin_LINE()) {
  fsr_store_matrices<count, transposed>(values.at, own_row<count, space>(address, offset, line), line);
}

// The transpose of 8 x 8 elements of 16 bits, of which lane l holds the pair l % 4 of row l / 4.
FSR_INSTRUCTION B32 movmatrix(B32 value, int line = __builtin_LINE()) {
  const fsr_post* posts = fsr_warp_exchange(&value, sizeof value, 0xffffffffu, line);
  int row = (int)fsr_lane() / 4, column = (int)fsr_lane() % 4 * 2;
  B16 parts[2];
  for (int e = 0; e < 2; e++) __builtin_memcpy(&parts[e], posts[(column + e) * 4 + row / 2].bytes + row % 2 * 2, 2);
  return (B32)parts[1] << 16 | parts[0];
}

// A factor as fragments hold it: bytes as numbers, so that A and B may differ in sign.
template <class T>
struct Held {
  using type = T;
  using factor = wmma_detail::Factor<T>;
};
template <>
struct Held<nvcuda::wmma::precision::tf32> {
  using type = float;
  using factor = wmma_detail::Factor<nvcuda::wmma::precision::tf32>;
};
template <>
struct Held<signed char> {
  using type = int;
  using factor = wmma_detail::Factor<signed char>;
};
template <>
struct Held<unsigned char> : Held<signed char> {};

template <class T>
using Element = typename nvcuda::wmma::helper_traits<T>::storage_element_type;
template <class T, int elements>
constexpr int registers = (int)sizeof(Element<T>) == 8 ? elements : elements * (int)sizeof(Element<T>) / 4;
template <class T>
using Word = std::conditional_t<sizeof(Element<T>) == 8, B64, B32>;

template <class T, int n>
FSR_PART_OF_IT void spread(typename Held<T>::type (&to)[n], const Word<T>* of) {
  Element<T> parts[n];
  __builtin_memcpy(parts, of, sizeof parts);
  for (int e = 0; e < n; e++) to[e] = parts[e];
}

template <class TA, class TB, class TC, class TD, int m, int n, int k>
FSR_ONE_INSTRUCTION void fsr_fragments(Word<TD>* d, const Word<TA>* a, const Word<TB>* b, const Word<TC>* c, bool saturate,
                                       int line) {
  using namespace nvcuda::wmma;
  using A = wmma_detail::Shape<matrix_a, m, n, k, Element<TA>>;
  using B = wmma_detail::Shape<matrix_b, m, n, k, Element<TB>>;
  using C = wmma_detail::Shape<accumulator, m, n, k, TC>;
  using Factor = typename Held<TA>::factor;
  typename Held<TA>::type left[m * k / 32];
  typename Held<TB>::type right[n * k / 32];
  TC before[m * n / 32];
  TD behind[m * n / 32];
  spread<TA>(left, a);
  spread<TB>(right, b);
  __builtin_memcpy(before, c, sizeof before);
  constexpr double operations = 2.0 * m * n * k * wmma_detail::cost<TA>;
  wmma_detail::fsr_multiply<A, B, C, Factor, typename Factor::type, typename Held<TA>::type, TC, TD, m, n, k>(
      {behind, left, right, before, false}, saturate, operations, line);
  __builtin_memcpy(d, behind, sizeof behind);
}
template <class TA, class TB, class TC, class TD, int m, int n, int k>
FSR_INSTRUCTION Several<Word<TD>, registers<TD, m * n / 32>> mma(
    const Several<Word<TA>, registers<TA, m * k / 32>>& a, const Several<Word<TB>, registers<TB, n * k / 32>>& b,
    const Several<Word<TC>, registers<TC, m * n / 32>>& c, bool saturate, int line = __builtin_LINE()) {
  Several<Word<TD>, registers<TD, m * n / 32>> d;
  fsr_fragments<TA, TB, TC, TD, m, n, k>(d.at, a.at, b.at, c.at, saturate, line);
  return d;
}

}  // namespace fsr_ptx
