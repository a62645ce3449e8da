// nvcuda::wmma: matrices shared by the lanes of a warp, and their products.
//
// Which element of a matrix a lane holds is not specified by CUDA; here it is what sm_80 and later have. Products are
// exact; sums are rounded to the accumulator's type after each (halves: after each mma_sync, float until then), where a
// GPU cuts off what lies below a few more digits: see docs/host-device.md.
#pragma once
#include "bfloat16.h"
#include "warp.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}
enum layout_t { mem_row_major, mem_col_major };

template <class T>
struct helper_traits {
  typedef T element_type;
  typedef T storage_element_type;
  typedef T fill_argument_type;
};
template <>
struct helper_traits<precision::tf32> {
  typedef precision::tf32 element_type;
  typedef float storage_element_type;
  typedef float fill_argument_type;
};

template <class T, int size, int packed_size = size>
struct alignas(8) __frag_base {
  enum { num_elements = size };
  enum { num_storage_elements = packed_size };
  typedef T element_type;
  typedef typename helper_traits<T>::storage_element_type storage_element_type;
  storage_element_type x[num_storage_elements];
};

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment;
#define FSR_FRAGMENT(Use, m, n, k, T, size)                                            \
  template <>                                                                          \
  class fragment<Use, m, n, k, T, row_major> : public __frag_base<T, size> {};         \
  template <>                                                                          \
  class fragment<Use, m, n, k, T, col_major> : public __frag_base<T, size> {};
#define FSR_SUMS(m, n, k, T, size) \
  template <>                      \
  class fragment<accumulator, m, n, k, T> : public __frag_base<T, size> {};
#define FSR_SHAPE(m, n, k, T, a, b)      \
  FSR_FRAGMENT(matrix_a, m, n, k, T, a)  \
  FSR_FRAGMENT(matrix_b, m, n, k, T, b)
#define FSR_SHAPES(T, a, a_tall, b_tall)    \
  FSR_SHAPE(16, 16, 16, T, a, a)            \
  FSR_SHAPE(32, 8, 16, T, a_tall, b_tall)   \
  FSR_SHAPE(8, 32, 16, T, b_tall, a_tall)
FSR_SHAPES(__half, 16, 16, 16)
FSR_SHAPES(__nv_bfloat16, 8, 16, 4)
FSR_SHAPES(signed char, 8, 16, 4)
FSR_SHAPES(unsigned char, 8, 16, 4)
FSR_SHAPE(16, 16, 8, precision::tf32, 4, 4)
FSR_SHAPE(8, 8, 4, double, 1, 1)
#define FSR_ALL_SUMS(T)      \
  FSR_SUMS(16, 16, 16, T, 8) \
  FSR_SUMS(32, 8, 16, T, 8)  \
  FSR_SUMS(8, 32, 16, T, 8)
FSR_ALL_SUMS(__half)
FSR_ALL_SUMS(float)
FSR_ALL_SUMS(int)
FSR_SUMS(16, 16, 8, float, 8)
FSR_SUMS(8, 8, 4, double, 2)
#undef FSR_ALL_SUMS
#undef FSR_SHAPES
#undef FSR_SHAPE
#undef FSR_SUMS
#undef FSR_FRAGMENT

// A call that counts as one instruction, which it is on a GPU; what it does inside is not recorded but told.
#ifdef FSR_RECORD
#define FSR_ONE_INSTRUCTION FSR_UNRECORDED __attribute__((noinline))
#else
#define FSR_ONE_INSTRUCTION inline
#endif
#define FSR_PART_OF_IT FSR_UNRECORDED inline __attribute__((always_inline))

namespace fsr_detail {

// How a matrix lies in the lanes: tiles of 8 x (4 * run) elements, of which lane l holds `run` neighbours of row l / 4.
// `outer` x `inner` elements; inner is k in operands, n in sums.
template <class Use, int m, int n, int k, class T>
struct Shape {
  static constexpr bool sums = std::is_same_v<Use, accumulator>, left = !std::is_same_v<Use, matrix_b>;
  static constexpr int outer = left ? m : n, inner = sums ? n : k;
  static constexpr int run = sums ? 2 : sizeof(T) == 8 ? 1 : 4 / (int)sizeof(T);
  static constexpr int own = outer * inner / 32;  // elements a lane; what a fragment has more of repeats them
  FSR_PART_OF_IT static constexpr int row(int e, int lane) {
    return (left ? e / run % (outer / 8) : e / run / (inner / (4 * run))) * 8 + lane / 4;
  }
  FSR_PART_OF_IT static constexpr int column(int e, int lane) {
    return (left ? e / run / (outer / 8) : e / run % (inner / (4 * run))) * 4 * run + lane % 4 * run + e % run;
  }
};

// `along`: whether the inner dimension is contiguous in memory, whose other stride is `pitch`.
FSR_PART_OF_IT size_t place(int row, int column, size_t pitch, bool along) {
  return along ? row * pitch + column : column * pitch + row;
}

// Tells the recorder what the warp accesses: neighbours in memory together; 16-bit elements that lie across are
// fetched by rows as well (ldmatrix.trans).
template <class S, class T>
FSR_PART_OF_IT void fsr_note(const T* at, size_t pitch, bool along, unsigned how, int line, const void* caller) {
#ifdef FSR_RECORD
  int lane = (int)fsr_lane();
  for (int e = 0; e < S::own; e += along || (sizeof(T) == 2 && S::run == 2 && !S::sums) ? S::run : 1) {
    int row = S::row(e, lane), column = S::column(e, lane);
    if (!along && sizeof(T) == 2 && S::run == 2 && !S::sums) {
      row = row / 8 * 8 + lane % 4 * 2;
      column = column / 8 * 8 + lane / 4;
    }
    bool pair = along || (sizeof(T) == 2 && S::run == 2 && !S::sums);
    fsr_note_plain(at + place(row, column, pitch, along), (unsigned)sizeof(T) * (pair ? S::run : 1), how, line, caller);
  }
#endif
}

inline __attribute__((always_inline)) void check(const void* at, size_t pitch_bytes) {
  if (((uintptr_t)at | pitch_bytes) & 15) fsr_misaligned(at, 16);
}

template <class S, class T>
FSR_ONE_INSTRUCTION void fsr_load(T* x, int size, const T* at, size_t pitch, bool along, int line) {
  fsr_note<S>(at, pitch, along, FSR_LOAD, line, __builtin_return_address(0));
  int lane = (int)fsr_lane();
  for (int e = 0; e < size; e++) x[e] = at[place(S::row(e % S::own, lane), S::column(e % S::own, lane), pitch, along)];
}
template <class S, class T>
FSR_ONE_INSTRUCTION void fsr_store(T* at, const T* x, size_t pitch, bool along, int line) {
  fsr_note<S>(at, pitch, along, FSR_STORE, line, __builtin_return_address(0));
  int lane = (int)fsr_lane();
  for (int e = 0; e < S::own; e++) at[place(S::row(e, lane), S::column(e, lane), pitch, along)] = x[e];
}

// What a factor is multiplied as, and what sums are held in until they are stored.
template <class T>
struct Factor {
  using type = float;
  FSR_PART_OF_IT static float of(T x) { return x; }
};
#ifdef FSR_RECORD  // without calls, which would count
template <>
struct Factor<__nv_bfloat16> {
  using type = float;
  FSR_PART_OF_IT static float of(__nv_bfloat16 x) {
    unsigned word = (unsigned)x.__x << 16;
    float wide;
    __builtin_memcpy(&wide, &word, sizeof wide);
    return wide;
  }
};
#if defined(__FLT16_MAX__)
template <>
struct Factor<__half> {
  using type = float;
  FSR_PART_OF_IT static float of(__half x) {
    _Float16 same;
    __builtin_memcpy(&same, &x.__x, sizeof same);
    return (float)same;
  }
};
#endif
#endif
template <>
struct Factor<precision::tf32> {
  using type = float;
  // Hardware reads ten bits of the fraction.
  FSR_PART_OF_IT static float of(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }
};
template <>
struct Factor<double> {
  using type = double;
  FSR_PART_OF_IT static double of(double x) { return x; }
};
template <>
struct Factor<signed char> {
  using type = int;
  FSR_PART_OF_IT static int of(int x) { return x; }
};
template <>
struct Factor<unsigned char> : Factor<signed char> {};

template <int n>
FSR_PART_OF_IT void add_row(float* sums, float a, const float* b) {
#ifdef FSR_TRACE
  for (int j = 0; j < n; j++) sums[j] = __builtin_fmaf(a, b[j], sums[j]);
#else  // what is multiplied has so few digits that products are exact
  typedef float Eight __attribute__((vector_size(32)));
  for (int j = 0; j < n; j += 8) *(Eight*)(sums + j) += a * *(const Eight*)(b + j);
#endif
}
template <int n>
FSR_PART_OF_IT void add_row(double* sums, double a, const double* b) {
  for (int j = 0; j < n; j++) sums[j] = __builtin_fma(a, b[j], sums[j]);
}
template <int n>
FSR_PART_OF_IT void add_row(long long* sums, int a, const int* b) {
  for (int j = 0; j < n; j++) sums[j] += (long long)a * b[j];
}
FSR_PART_OF_IT int kept(long long sum, bool saturate) {
  if (!saturate) return (int)(unsigned)sum;
  return sum > 2147483647 ? 2147483647 : sum < -2147483647 - 1 ? -2147483647 - 1 : (int)sum;
}
FSR_PART_OF_IT float kept(float sum, bool) { return sum; }
FSR_PART_OF_IT double kept(double sum, bool) { return sum; }

// Where one lane's fragments are, for the lane that computes the product for all.
struct Part {
  void* d;
  const void *a, *b, *c;
  bool done;
};

template <class A, class B, class C, class F, class T, class TA, class TC, class TD, int m, int n, int k>
FSR_PART_OF_IT void fsr_product(Part* const* parts, bool saturate) {
  using Sum = std::conditional_t<std::is_same_v<T, int>, long long, T>;
  T a[m][k];
  alignas(32) T b[k][n];
  alignas(32) Sum sums[m][n];
  for (int lane = 0; lane < 32; lane++) {
    auto xa = static_cast<const TA*>(parts[lane]->a), xb = static_cast<const TA*>(parts[lane]->b);
    auto xc = static_cast<const TC*>(parts[lane]->c);
    for (int e = 0; e < A::own; e++) a[A::row(e, lane)][A::column(e, lane)] = F::of(xa[e]);
    for (int e = 0; e < B::own; e++) b[B::column(e, lane)][B::row(e, lane)] = F::of(xb[e]);
    for (int e = 0; e < C::own; e++) sums[C::row(e, lane)][C::column(e, lane)] = xc[e];
  }
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++) add_row<n>(sums[i], a[i][l], b[l]);
  for (int lane = 0; lane < 32; lane++) {
    auto xd = static_cast<TD*>(parts[lane]->d);
    for (int e = 0; e < C::own; e++) xd[e] = kept(sums[C::row(e, lane)][C::column(e, lane)], saturate);
    parts[lane]->done = true;
  }
}

// The lanes meet; the first to go on computes for all of them, whose fragments stay where they are until then.
template <class A, class B, class C, class F, class T, class TA, class TC, class TD, int m, int n, int k>
FSR_ONE_INSTRUCTION void fsr_multiply(Part own, bool saturate, double operations, int line) {
  Part* at = &own;
  const fsr_post* posts = fsr_warp_exchange(&at, sizeof at, 0xffffffffu, line);
  if (*(volatile bool*)&own.done) return;
  Part* parts[32];
  for (int lane = 0; lane < 32; lane++) {
    __builtin_memcpy(&parts[lane], posts[lane].bytes, sizeof at);
    bool absent = (uintptr_t)parts[lane] == 0xFBFBFBFBFBFBFBFBull;
    if (absent) fsr_trap("mma_sync by fewer than the 32 lanes of a warp", line);
  }
  fsr_note_tensor(operations);
  fsr_product<A, B, C, F, T, TA, TC, TD, m, n, k>(parts, saturate);
}

// Whether sums of type C and D may belong to factors of type T.
template <class T, class C, class D>
constexpr bool summed = std::is_same_v<C, D> && std::is_same_v<C, typename Factor<T>::type>;
template <class C, class D>
constexpr bool summed<__half, C, D> =
    (std::is_same_v<C, float> || std::is_same_v<C, __half>)&&(std::is_same_v<D, float> || std::is_same_v<D, __half>);

// How long a product takes beside one of halves, from the rates of dense products in NVIDIA's H100 white paper.
template <class T>
constexpr double cost = sizeof(T) == 8 ? 989.4 / 66.9 : sizeof(T) == 1 ? 0.5 : 1.0;
template <>
constexpr double cost<precision::tf32> = 2.0;

}  // namespace fsr_detail

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const typename helper_traits<T>::fill_argument_type& v) {
  for (auto& x : f.x) x = v;
}

template <class Use, int m, int n, int k, class T, class Layout>
inline __attribute__((always_inline)) void load_matrix_sync(
    fragment<Use, m, n, k, T, Layout>& f, const typename helper_traits<T>::storage_element_type* at, unsigned pitch,
    int line = __builtin_LINE()) {
  static_assert(!std::is_same_v<Use, accumulator>, "load_matrix_sync of an accumulator takes a layout");
  using E = typename helper_traits<T>::storage_element_type;
  using S = fsr_detail::Shape<Use, m, n, k, E>;
  constexpr bool along = std::is_same_v<Layout, row_major> == std::is_same_v<Use, matrix_a>;
  if (sizeof(E) < 8) fsr_detail::check(at, pitch * sizeof(E));
  fsr_detail::fsr_load<S>(f.x, f.num_elements, at, pitch, along, line);
}
template <int m, int n, int k, class T>
inline __attribute__((always_inline)) void load_matrix_sync(fragment<accumulator, m, n, k, T>& f,
                                                            const std::common_type_t<T>* at, unsigned pitch,
                                                            layout_t layout, int line = __builtin_LINE()) {
  using S = fsr_detail::Shape<accumulator, m, n, k, T>;
  if (sizeof(T) < 8) fsr_detail::check(at, pitch * sizeof(T));
  fsr_detail::fsr_load<S>(f.x, f.num_elements, at, pitch, layout == mem_row_major, line);
}
template <int m, int n, int k, class T>
inline __attribute__((always_inline)) void store_matrix_sync(std::common_type_t<T>* at,
                                                             const fragment<accumulator, m, n, k, T>& f, unsigned pitch,
                                                             layout_t layout, int line = __builtin_LINE()) {
  using S = fsr_detail::Shape<accumulator, m, n, k, T>;
  if (sizeof(T) < 8) fsr_detail::check(at, pitch * sizeof(T));
  fsr_detail::fsr_store<S>(at, f.x, pitch, layout == mem_row_major, line);
}

template <int m, int n, int k, class T, class LA, class LB, class TC, class TD>
inline __attribute__((always_inline)) void mma_sync(fragment<accumulator, m, n, k, TD>& d,
                                                    const fragment<matrix_a, m, n, k, T, LA>& a,
                                                    const fragment<matrix_b, m, n, k, T, LB>& b,
                                                    const fragment<accumulator, m, n, k, TC>& c,
                                                    bool saturate = false, int line = __builtin_LINE()) {
  static_assert(fsr_detail::summed<T, TC, TD>, "no mma_sync of CUDA takes these types together");
  using E = typename helper_traits<T>::storage_element_type;
  using A = fsr_detail::Shape<matrix_a, m, n, k, E>;
  using B = fsr_detail::Shape<matrix_b, m, n, k, E>;
  using C = fsr_detail::Shape<accumulator, m, n, k, TC>;
  using F = fsr_detail::Factor<T>;
  fsr_detail::fsr_multiply<A, B, C, F, typename F::type, E, TC, TD, m, n, k>(
      {d.x, a.x, b.x, c.x, false}, saturate, 2.0 * m * n * k * fsr_detail::cost<T>, line);
}

// cvt.rna.tf32.f32: to the nearest number of ten bits, ties away from zero.
inline float __float_to_tf32(float x) {
  unsigned word = fsr::bits<unsigned>(x);
  return (word & 0x7f800000u) == 0x7f800000u ? x : fsr::bits<float>((word + 0x1000u) & 0xffffe000u);
}

}  // namespace wmma
}  // namespace nvcuda
