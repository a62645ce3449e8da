// PTX's instructions on fragments of a warp. Layouts: PTX ISA 8.7, "Matrix multiply-accumulate Instructions using mma
// Instruction" and "ldmatrix"; sums are rounded as those of wmma are here.
#pragma once
#include "ptx_memory.h"
#include "wmma.h"

namespace fsr_ptx {

namespace wmma_detail = nvcuda::wmma::fsr_detail;

// A row of 16 bytes each at the addresses that the lanes 8 * number ... + 7 hold; this lane's word of row lane / 4.
FSR_INSTRUCTION unsigned char* row_of(const fsr_post* posts, int number, int row) {
  unsigned char* at;
  __builtin_memcpy(&at, posts[8 * number + row].bytes, sizeof at);
  return at;
}
// What the lanes that hold addresses tell all of them; copied, since the posts last until the next call.
template <int count>
struct Rows {
  fsr_post posts[8 * count];
};
template <int count, Space space, class R>
FSR_INSTRUCTION Rows<count> rows_of(R address, long long offset, int line) {
  unsigned char* own = nullptr;
  if ((int)fsr_lane() < 8 * count) own = place<space>(address, offset, 16, line);
  const fsr_post* posts = fsr_warp_exchange(&own, sizeof own, 0xffffffffu, line);
  Rows<count> rows;
  __builtin_memcpy(&rows, posts, sizeof rows);
  for (int lane = 0; lane < 8 * count; lane++)
    if ((uintptr_t)row_of(rows.posts, lane / 8, lane % 8) == 0xFBFBFBFBFBFBFBFBull)
      fsr_trap("ldmatrix or stmatrix by fewer than the 32 lanes of a warp", line);
  return rows;
}

template <int count, bool transposed, Space space, class R>
FSR_INSTRUCTION Several<B32, count> ldmatrix(R address, long long offset, int line = __builtin_LINE()) {
  Rows<count> rows = rows_of<count, space>(address, offset, line);
  int lane = (int)fsr_lane();
  Several<B32, count> found;
  for (int number = 0; number < count; number++) {
    const unsigned char* word = row_of(rows.posts, number, lane / 4) + lane % 4 * 4;
    fsr_note_plain(word, 4, FSR_LOAD, line);
    if constexpr (transposed) {
      B32 low = fetched<B16>(row_of(rows.posts, number, lane % 4 * 2) + lane / 4 * 2);
      B32 high = fetched<B16>(row_of(rows.posts, number, lane % 4 * 2 + 1) + lane / 4 * 2);
      found.at[number] = high << 16 | low;
    } else {
      found.at[number] = fetched<B32>(word);
    }
  }
  return found;
}

template <int count, bool transposed, Space space, class R>
FSR_INSTRUCTION void stmatrix(R address, long long offset, Several<B32, count> values, int line = __builtin_LINE()) {
  Rows<count> rows = rows_of<count, space>(address, offset, line);
  int lane = (int)fsr_lane();
  for (int number = 0; number < count; number++) {
    if constexpr (transposed) {
      for (int half = 0; half < 2; half++) {
        unsigned char* at = row_of(rows.posts, number, lane % 4 * 2 + half) + lane / 4 * 2;
        fsr_note_plain(at, 2, FSR_STORE, line);
        kept(at, (B16)(values.at[number] >> 16 * half));
      }
    } else {
      unsigned char* word = row_of(rows.posts, number, lane / 4) + lane % 4 * 4;
      fsr_note_plain(word, 4, FSR_STORE, line);
      kept(word, values.at[number]);
    }
  }
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
FSR_INSTRUCTION void spread(typename Held<T>::type (&to)[n], const Several<Word<T>, registers<T, n>>& of) {
  Element<T> parts[n];
  __builtin_memcpy(parts, of.at, sizeof parts);
  for (int e = 0; e < n; e++) to[e] = parts[e];
}

template <class TA, class TB, class TC, class TD, int m, int n, int k>
FSR_INSTRUCTION Several<Word<TD>, registers<TD, m * n / 32>> mma(
    const Several<Word<TA>, registers<TA, m * k / 32>>& a, const Several<Word<TB>, registers<TB, n * k / 32>>& b,
    const Several<Word<TC>, registers<TC, m * n / 32>>& c, bool saturate, int line = __builtin_LINE()) {
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
  __builtin_memcpy(before, c.at, sizeof before);
  constexpr double operations = 2.0 * m * n * k * wmma_detail::cost<TA>;
  wmma_detail::fsr_multiply<A, B, C, Factor, typename Factor::type, typename Held<TA>::type, TC, TD, m, n, k>(
      {behind, left, right, before, false}, saturate, operations, line);
  Several<Word<TD>, registers<TD, m * n / 32>> result;
  __builtin_memcpy(result.at, behind, sizeof behind);
  return result;
}

}  // namespace fsr_ptx
