// PTX's cvt. Meanings: PTX ISA 8.7, "Data Movement and Conversion Instructions: cvt".
#pragma once
#include "ptx_halves.h"

namespace fsr_ptx {

template <class T>
constexpr bool is_half = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
template <class T>
constexpr bool is_real = std::is_floating_point_v<T> || is_half<T>;

// A float that may be inexact already by rounding to odd, to 16 bits.
template <class H, unsigned mode>
FSR_INSTRUCTION H narrowed(float x) {
  constexpr unsigned rounding = mode & kRounding;
  if constexpr (rounding <= kRn)
    return H(x);
  else if constexpr (std::is_same_v<H, __half>)
    return fsr::from_bits<H>(fsr::float_to_half_directed<(rounding == kRz ? 3 : rounding == kRp ? 2 : 1)>(x));
  else
    return fsr::from_bits<H>(fsr::float_to_bfloat16_directed(x, rounding == kRp ? x > 0.0f : rounding == kRm && x < 0.0f));
}
FSR_INSTRUCTION float to_odd(float x) { return x; }
FSR_INSTRUCTION float to_odd(double x) { return fsr::round_to_odd(x); }

// tf32: ten bits of the fraction. Nearest with ties away from zero, with ties to even, or cut off.
template <unsigned mode>
FSR_INSTRUCTION B32 to_tf32(float x) {
  B32 word = fsr::bits<B32>(x);
  if ((word & 0x7f800000u) == 0x7f800000u) return x != x ? 0x7fffffffu : word;
  if constexpr ((mode & kRelu) != 0)
    if (word >> 31) return 0;
  constexpr unsigned rounding = mode & kRounding;
  return (word + (rounding == kRna ? 0x1000u : rounding == kRn ? 0xfffu + (word >> 13 & 1) : 0u)) & 0xffffe000u;
}

template <class To, class Of, unsigned mode>
FSR_INSTRUCTION To to_integer(Of x) {
  constexpr bool lowest = std::is_same_v<Of, double> || sizeof(To) == 8;  // what NaN gives
  constexpr To nan = lowest ? (To)((B64)1 << (8 * sizeof(To) - 1)) : (To)0;
  return fsr::saturating<To, direction<mode>()>((double)before<mode>((std::conditional_t<is_half<Of>, float, Of>)x), nan);
}

template <class To, class Of, unsigned mode>
FSR_INSTRUCTION To of_integer(Of x) {
  using Long = std::conditional_t<std::is_signed_v<Of>, long long, unsigned long long>;
  if constexpr (is_half<To>)
    return halves::out<mode>(narrowed<To, mode>(fsr::round_to_odd(fsr::integer_to_odd((Long)x))));
  else if constexpr (direction<mode>() == fsr::kNearest)
    return behind<mode>((To)x);
  else if constexpr (sizeof(To) == 4)
    return behind<mode>(fsr::rounded_float<direction<mode>()>((Long)x));
  else
    return behind<mode>(fsr::rounded_double<direction<mode>()>((Long)x));
}

template <class T, unsigned mode>
FSR_INSTRUCTION T cut(T x) {
  if constexpr (is_half<T>)
    return halves::out<mode>(T((float)fsr::integral<direction<mode>()>((double)(float)halves::in<mode>(x))));
  else
    return behind<mode>((T)fsr::integral<direction<mode>()>((double)before<mode>(x)));
}

template <class To, class Of, unsigned mode>
FSR_INSTRUCTION To between_reals(Of x) {
  if constexpr (std::is_same_v<To, Of>) {
    if constexpr ((mode & kWhole) != 0)  // to an integer of the same type; zeros keep their sign
      return cut<To, mode>(x);
    else if constexpr (is_half<To>)
      return halves::out<mode>(halves::in<mode>(x));
    else
      return behind<mode>(before<mode>(x));
  } else if constexpr (is_half<To>) {
    using Wide = std::conditional_t<is_half<Of>, float, Of>;
    return halves::out<mode & ~kFtz>(narrowed<To, mode>(to_odd(before<mode>((Wide)x))));
  } else if constexpr (is_half<Of>) {
    return behind<mode & ~kFtz>((To)(float)x);
  } else if constexpr (sizeof(To) == 4 && direction<mode>() == fsr::kNearest) {
    return behind<mode>((float)x);
  } else if constexpr (sizeof(To) == 4) {
    return behind<mode>(fsr::rounded_narrow<direction<mode>()>(x));
  } else {
    return behind<mode>((double)before<mode>(x));
  }
}

template <class To, class Of, unsigned mode>
FSR_INSTRUCTION auto cvt(Of x) {
  if constexpr (std::is_same_v<To, Tf32>)
    return to_tf32<mode>(x);
  else if constexpr (is_real<To> && is_real<Of>)
    return between_reals<To, Of, mode>(x);
  else if constexpr (is_real<To>)
    return of_integer<To, Of, mode>(x);
  else if constexpr (is_real<Of>)
    return to_integer<To, Of, mode>(x);
  else if constexpr ((mode & kSat) != 0)
    return (To)((__int128)x > (__int128)std::numeric_limits<To>::max()   ? std::numeric_limits<To>::max()
                : (__int128)x < (__int128)std::numeric_limits<To>::min() ? std::numeric_limits<To>::min()
                                                                         : (To)x);
  else
    return (To)x;
}

}  // namespace fsr_ptx
