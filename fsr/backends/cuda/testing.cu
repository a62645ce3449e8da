// Tests on the device: arrays drawn by formula (the twin of fsr/testgen/draws.py, the same bits), and outputs compared
// element by element (the twin of fsr/testgen/compare.py). Built into testing.ptx as check.cu is into check.ptx, with
// -fmad=false: a fused multiplication and addition would round otherwise than NumPy does.
typedef unsigned long long u64;
struct Draw {
  u64 key, count, row, kind, tables, planted, type, item, low, span, finite, widened;
  double a, b, c, least, most;
  u64 table[8], places[4], values[4];
};
enum { NORMAL, UNIFORM, EXPONENTS, CHOICE, CYCLE, RAMP, PAIRS, GRID, INTEGER, STEPS, BITS };
enum { F16, BF16, F32, F64, WHOLE };

__device__ double as_double(u64 bits) { return __longlong_as_double((long long)bits); }
__device__ u64 as_bits(double value) { return (u64)__double_as_longlong(value); }
__device__ bool is_finite(double v) { return v - v == 0.0; }

__device__ u64 mixed(u64 key, u64 i) {
  u64 z = (i + 1) * 0x9E3779B97F4A7C15ull + key;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
__device__ double unit(u64 word) { return (double)(word >> 11) * (1.0 / 9007199254740992.0); }
__device__ double centred(u64 word) {
  long long total = (long long)((word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48)) - 131070;
  long long low = (long long)((word * 0xD1B54A32D192ED03ull) >> 44);
  return (double)(total * 1048576 + low) * (1.0 / 34359738368.0);
}

__device__ double bent(const Draw& d, double v) {
  const double infinity = as_double(0x7FF0000000000000ull);
  if (d.finite && !is_finite(v)) v = 1.0;
  const bool below = d.least != -infinity, above = d.most != infinity;
  if (!below && !above) return v;
  if (!above) {
    if (d.least > 0) return d.least + fabs(v - d.least);
    return v != v ? v : fabs(v) > d.least ? fabs(v) : d.least;
  }
  if (!below) return d.most - fabs(v - d.most);
  if (d.least >= 0) v = fabs(v);
  if (d.least > 0 && v < d.least) v = d.least + (d.least - v);
  if (!is_finite(v)) return v;
  const double width = d.most - d.least;
  if (v >= d.least && v <= d.most) return v;
  double rest = fmod(v - d.least, width > 1e-300 ? width : 1e-300);
  if (rest < 0) rest = rest + width;
  v = d.least + rest;
  return v < d.least ? d.least : v > d.most ? d.most : v;
}

__device__ double base_value(const Draw& d, u64 i, u64 source) {
  const u64 word = mixed(d.key, source);
  switch (d.kind) {
    case NORMAL: return d.b + d.a * centred(word);
    case PAIRS: {
      const u64 half = d.count / 2;
      const bool second = i >= half && i < half + half;
      const double v = d.a * centred(mixed(d.key, second ? i - half : i));
      return second ? -(v * (1.0 + d.c)) : v;
    }
    case UNIFORM: return d.b + d.a * unit(word);
    case EXPONENTS: {
      const u64 exponent = mixed(d.key ^ 0xD1B54A32D192ED03ull, source) % (u64)d.b + (u64)((long long)d.a + 1023);
      return as_double((word & 0x8000000000000000ull) | exponent << 52 | (word & 0xFFFFFFFFFFFFFull));
    }
    case GRID: {
      const long long reach = (long long)d.c;
      return d.b + d.a * (double)((long long)(word % (u64)(2 * reach + 1)) - reach);
    }
    case RAMP: return d.a + (d.b - d.a) * (((double)i + unit(word)) / (double)d.count);
    case CYCLE: return as_double(d.table[i % d.tables]);
  }
  return as_double(d.table[word % d.tables]);
}

__device__ u64 source_of(const Draw& d, u64 i, bool& flipped) {
  flipped = false;
  if (d.count <= 1048576) return i;
  const u64 word = mixed(d.key ^ 0x8CB92BA72F3D8DD7ull, i >> 20);
  flipped = word >> 63;
  return (i + word) & 1048575;
}

__device__ double floating(const Draw& d, u64 i) {
  const double infinity = as_double(0x7FF0000000000000ull);
  bool flipped;
  double v = base_value(d, i, source_of(d, i, flipped));
  const bool symmetric = (d.kind == NORMAL && d.b == 0.0) || d.kind == EXPONENTS;
  if (flipped && symmetric && d.least == -infinity && d.most == infinity) v = -v;
  if (d.row && d.kind != CHOICE)
    v = as_double(d.table[mixed(d.key ^ 0xD1B54A32D192ED03ull, i / d.row) % d.tables]) + v;
  for (u64 p = 0; p < d.planted; p++)
    if (d.places[p] == i) v = as_double(d.values[p]);
  return bent(d, v);
}

__device__ u64 whole(const Draw& d, u64 i) {
  bool flipped;
  const u64 word = mixed(d.key, source_of(d, i, flipped));
  u64 v;
  if (d.kind == CHOICE) v = d.table[word % d.tables];
  else if (d.kind == CYCLE) v = d.table[i % d.tables];
  else if (d.kind == STEPS) {
    u64 step = d.span / (d.count ? d.count : 1), at = d.a < 0 ? d.count - 1 - i : i;
    if (!step) step = 1;
    const u64 offset = at * step + word % step;
    v = (offset < d.span - 1 ? offset : d.span - 1) + d.low;
  } else v = (d.span ? word % d.span : word) + d.low;
  for (u64 p = 0; p < d.planted; p++)
    if (d.places[p] == i) v = d.values[p];
  return v;
}

// Rounding to nearest even from float32's bits to a type of fewer bits.
__device__ u64 to_bfloat16(unsigned f) {
  if ((f & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0;
  return (f + 0x7FFFu + (f >> 16 & 1)) >> 16;
}
__device__ u64 to_half(unsigned f) {
  const unsigned sign = f >> 16 & 0x8000, size = f & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return 0x7E00;
  if (size >= 0x47800000u) return sign | 0x7C00;
  if (size < 0x38800000u) {  // denormal: the significand is shifted to units of 2^-24
    const int shift = 126 - (int)(size >> 23);
    if (shift > 24) return sign;
    const unsigned bits = (size & 0x7FFFFF) | 0x800000, kept = bits >> shift, rest = bits & ((1u << shift) - 1);
    const unsigned tie = 1u << (shift - 1);
    return sign | (kept + (rest > tie || (rest == tie && (kept & 1))));
  }
  return sign | ((size - 0x38000000u + 0xFFFu + (size >> 13 & 1)) >> 13);
}
__device__ u64 narrowed(double v, u64 type) {
  if (v != v) return type == F64 ? 0x7FF8000000000000ull : type == F32 ? 0x7FC00000ull : type == F16 ? 0x7E00 : 0x7FC0;
  if (type == F64) return as_bits(v);
  const unsigned f = (unsigned)__float_as_int((float)v);
  return type == F32 ? f : type == F16 ? to_half(f) : to_bfloat16(f);
}
__device__ double widened(u64 bits, u64 type) {
  if (type == F64) return as_double(bits);
  if (type == F32) return (double)__int_as_float((int)bits);
  if (type == BF16) return (double)__int_as_float((int)(bits << 16));
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (int)(bits >> 10 & 31);
  const double fraction = (double)(bits & 1023);
  if (exponent == 31) return fraction ? as_double(0x7FF8000000000000ull) : sign * as_double(0x7FF0000000000000ull);
  if (!exponent) return sign * fraction * (1.0 / 16777216.0);
  return sign * (1024.0 + fraction) * as_double((u64)(exponent - 25 + 1023) << 52);
}

__device__ u64 load(const void* at, u64 i, u64 item) {
  switch (item) {
    case 1: return ((const unsigned char*)at)[i];
    case 2: return ((const unsigned short*)at)[i];
    case 4: return ((const unsigned*)at)[i];
  }
  return ((const u64*)at)[i];
}
__device__ void store(void* at, u64 i, u64 item, u64 bits) {
  switch (item) {
    case 1: ((unsigned char*)at)[i] = (unsigned char)bits; return;
    case 2: ((unsigned short*)at)[i] = (unsigned short)bits; return;
    case 4: ((unsigned*)at)[i] = (unsigned)bits; return;
  }
  ((u64*)at)[i] = bits;
}
__device__ u64 element(const Draw& d, u64 i) {
  if (d.kind == BITS) return d.table[0];
  u64 bits = d.type == WHOLE ? whole(d, i) : narrowed(floating(d, i), d.type);
  if (d.item < 8) bits &= (1ull << 8 * d.item) - 1;
  return d.widened && d.type != WHOLE ? as_bits(widened(bits, d.type)) : bits;
}

#define EACH(i, count)                                                        \
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < (count); i += gridDim.x * (u64)blockDim.x)

extern "C" __global__ void fsr_draw(void* out, const Draw* draw) {
  const Draw d = *draw;
  EACH(i, d.count) store(out, i, d.widened && d.kind != BITS ? 8 : d.item, element(d, i));
}

// The number of the first element that is not as drawn, left alone when all are.
extern "C" __global__ void fsr_drawn(const void* at, const Draw* draw, u64* first) {
  const Draw d = *draw;
  const u64 item = d.widened && d.kind != BITS ? 8 : d.item;
  EACH(i, d.count) {
    const u64 want = element(d, i);
    if (load(at, i, item) != (item < 8 ? want & ((1ull << 8 * item) - 1) : want)) {
      atomicMin(first, i);
      return;
    }
  }
}

// Each element off by a relative amount of a half to one step, either way, within bounds.
struct Shake { u64 count, type, item, key; double step, least, most; };
extern "C" __global__ void fsr_shake(void* at, const Shake* shake) {
  const Shake s = *shake;
  EACH(i, s.count) {
    const double old = widened(load(at, i, s.item), s.type), amount = unit(mixed(s.key, i)) - 0.5;
    double v = old + old * (s.step * (amount < 0 ? amount - 0.5 : amount + 0.5));
    if (!is_finite(old)) v = old;
    v = v < s.least ? s.least : v > s.most ? s.most : v;
    store(at, i, s.item, narrowed(v, s.type));
  }
}

// The scale of errors: the answer's size, then what a perturbed run moved it by, over the step.
struct Scale { u64 count, type, item, begin; double step; };
extern "C" __global__ void fsr_scale(double* scale, const void* want, const void* moved, const Scale* what) {
  const Scale s = *what;
  EACH(i, s.count) {
    const double base = widened(load(want, i, s.item), s.type);
    if (s.begin) {
      scale[i] = is_finite(base) ? fabs(base) : 0.0;
      continue;
    }
    const double change = fabs(widened(load(moved, i, s.item), s.type) - base) / s.step;
    if (is_finite(change) && change > scale[i]) scale[i] = change;
  }
}

struct Compare {
  u64 count, type, item, exact, precise, pure, poison_got, poison_want, poison_again, sums, has_sign;
  double relative, absolute, usual, times, near;
};
// The original's error relative to its scale: largest, sum of squares and number, one row a block.
extern "C" __global__ void fsr_errors(const void* want, const double* truth, const double* scale, const Compare* what,
                                      double* rows) {
  __shared__ double largest[256], squares[256], numbers[256];
  const Compare c = *what;
  const unsigned t = threadIdx.x;
  largest[t] = squares[t] = numbers[t] = 0.0;
  EACH(i, c.count) {
    const double error = fabs(widened(load(want, i, c.item), c.type) - truth[i]);
    if (!(scale[i] > c.absolute)) continue;
    const double ratio = is_finite(error) ? error / scale[i] : 0.0;
    if (ratio > largest[t]) largest[t] = ratio;
    squares[t] = squares[t] + ratio * ratio;
    numbers[t] = numbers[t] + 1.0;
  }
  __syncthreads();
  if (t) return;
  for (unsigned k = 1; k < blockDim.x; k++) {
    if (largest[k] > largest[0]) largest[0] = largest[k];
    squares[0] = squares[0] + squares[k];
    numbers[0] = numbers[0] + numbers[k];
  }
  rows[blockIdx.x * 3] = largest[0], rows[blockIdx.x * 3 + 1] = squares[0], rows[blockIdx.x * 3 + 2] = numbers[0];
}

enum { RIGHT, VALUE, NON_FINITE, UNWRITTEN, WRITTEN };
struct Found { u64 kind, index, count; double excess, got, expected, error, bound; };

// An element as a number, and how far two are apart; of whole ones without an overflow between them.
__device__ double number(const Compare& c, u64 bits) {
  if (c.type != WHOLE) return widened(bits, c.type);
  const u64 top = 64 - 8 * c.item;
  return c.has_sign ? (double)((long long)(bits << top) >> top) : (double)bits;
}
__device__ double apart(const Compare& c, u64 one, u64 other) {
  if (c.type != WHOLE) return fabs(widened(one, c.type) - widened(other, c.type));
  const u64 turned = c.has_sign ? 1ull << (8 * c.item - 1) : 0, a = one ^ turned, b = other ^ turned;
  return (double)(a > b ? a - b : b - a);
}

__device__ u64 judged(const Compare& c, u64 got, u64 want, u64 again, double truth, double scale, Found& f) {
  if (got == want) return RIGHT;
  const bool never = c.pure && want == c.poison_want && again == c.poison_again;
  const bool left = c.pure && got == c.poison_got;
  if (never) return left ? RIGHT : WRITTEN;
  if (c.type == WHOLE || c.exact) {
    double spread = apart(c, want, again);
    if (!is_finite(spread)) spread = 0.0;
    f.got = number(c, got), f.expected = number(c, want), f.error = apart(c, got, want), f.bound = c.absolute + spread;
    if (f.got != f.got && f.expected != f.expected) return RIGHT;
    if (f.bound > 0.0 && f.error <= f.bound) return RIGHT;
    f.excess = is_finite(f.error) ? f.error / (f.bound > 1e-300 ? f.bound : 1e-300) : as_double(0x7FF0000000000000ull);
    return left ? UNWRITTEN : VALUE;
  }
  const double g = widened(got, c.type), w = widened(want, c.type), a = widened(again, c.type);
  double spread = fabs(w - a), bound, t = c.precise ? truth : w;
  if (!is_finite(spread)) spread = 0.0;
  bound = c.absolute + c.relative * scale + c.times * spread;
  if (c.precise) {
    double error = fabs(w - t);
    if (!is_finite(error)) error = 0.0;
    if (is_finite(w) && !is_finite(t)) t = w;
    const double own = c.usual * scale > error ? c.usual * scale : error;
    if (c.times * own + c.absolute > bound) bound = c.times * own + c.absolute;
  } else {
    bound = 2.0 * bound;
  }
  const double error = fabs(g - t);
  f.got = g, f.expected = t, f.error = error, f.bound = bound;
  f.excess = is_finite(error) ? error / (bound > 1e-300 ? bound : 1e-300) : as_double(0x7FF0000000000000ull);
  if (!is_finite(w) || !is_finite(g)) {
    if ((w != w && g != g) || w == g) return RIGHT;
    if (c.precise && !is_finite(w) && is_finite(t)) {
      if (error <= (c.near * fabs(t) > bound ? c.near * fabs(t) : bound)) return RIGHT;
      if (c.sums && !is_finite(g)) return RIGHT;
    }
    return left ? UNWRITTEN : NON_FINITE;
  }
  return error <= bound || g == t ? RIGHT : left ? UNWRITTEN : VALUE;
}

// The worst of the gravest kind, one row a block; its count is of that kind.
__device__ void graver(Found& best, const Found& f) {
  if (f.kind > best.kind || (f.kind == best.kind && f.excess > best.excess)) {
    const u64 count = f.kind == best.kind ? best.count + f.count : f.count;
    best = f;
    best.count = count;
  } else if (f.kind == best.kind) {
    best.count += f.count;
  }
}
extern "C" __global__ void fsr_compare(const void* got, const void* want, const void* again, const double* truth,
                                       const double* scale, const Compare* what, Found* rows) {
  __shared__ Found found[128];
  const Compare c = *what;
  Found best = {RIGHT, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0};
  EACH(i, c.count) {
    const bool near_truth = c.type != WHOLE && !c.exact;
    Found f = {RIGHT, i, 1, 0.0, 0.0, 0.0, 0.0, 0.0};
    f.kind = judged(c, load(got, i, c.item), load(want, i, c.item), load(again, i, c.item),
                    near_truth && c.precise ? truth[i] : 0.0, near_truth ? scale[i] : 0.0, f);
    if (f.kind != RIGHT) graver(best, f);
  }
  found[threadIdx.x] = best;
  __syncthreads();
  if (threadIdx.x) return;
  for (unsigned k = 1; k < blockDim.x; k++)
    if (found[k].kind != RIGHT) graver(best, found[k]);
  rows[blockIdx.x] = best;
}
