// Values that remember where they came from. The instrumented unit calls in here beside each operation with the
// numbers of its operands' nodes (0: no data took part) and gets the number of the result's. Values themselves stay
// what they are, so that control flow, addresses and types narrower than a number are those of an ordinary run.
#include "tracer.h"

#define FSR_RUNTIME_IMPLEMENTATION
#include "fsr/runtime.h"

#include <sys/mman.h>

#include <cstring>

extern "C" {
extern unsigned fsr_thread;  // which the headers declare const (see state.h)
}

namespace fsr {
namespace {

struct Cell {
  uintptr_t address;
  int32_t node;
  int32_t bytes;
  uint32_t writer;  // the thread, of what was stored under conditions on data
};
struct Guard {
  int32_t condition, outcome, join;
};
constexpr size_t kCells = size_t{1} << 22, kMaxGuards = 512, kThreads = 1024;

Node* nodes;
int32_t count, capacity;
int32_t* table;  // hash of a node to its number
size_t slots;
Cell* cells;
size_t used_cells;
int32_t launched;  // how many nodes there were when this launch began
uint32_t lost;  // bit per reason why something is not followed: see tracing.py
struct Path {
  Guard guards[kMaxGuards];
  int32_t depth, popped;  // guards[depth, depth + popped) were closed at the last join
};
Path* paths;
// Of many threads only some need be followed. Where they do not talk to each other, the others run and leave nothing;
// else what the others read and pass on is followed, and what they compute is unknown.
bool left_out[kThreads];
bool some_left_out, apart, in_part;
// A buffer. Its elements are leaves as long as they have no cell: what is stored there makes one.
struct Region {
  uintptr_t begin;
  size_t bytes;
  int32_t type, number;
};
Region regions[64];
int region_count;

enum Lost : uint32_t { kFull = 1, kDeep = 2, kVote = 4, kPartial = 8, kAside = 16, kCovered = 32 };

constexpr int32_t kBytes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ull;
  return x ^ (x >> 29);
}

template <class T>
T* pages(size_t n) {
  void* p = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<T*>(p);
}

bool unfollowed();
bool aside();

bool unknown(int32_t node) { return node && nodes[node].kind == kUnknown; }
bool known_by_value(int32_t kind) { return kind == kConst || kind == kInteger; }

int32_t make(int32_t kind, int32_t type, int32_t a, int32_t b, int32_t c, uint64_t value) {
  if (unfollowed()) return 0;
  if (kind > kLoad && kind != kPair && kind != kUnknown) {
    bool from_unknown = unknown(a) || (kind != kGuard && unknown(b)) || unknown(c);
    if (from_unknown && !aside() && !(lost & kCovered)) lost |= kAside;
    if (from_unknown || aside()) return make(kUnknown, type, 0, 0, 0, 0);
  }
  uint64_t h = mix(mix(mix(static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(type)) ^ static_cast<uint32_t>(a)) ^
                   (static_cast<uint64_t>(static_cast<uint32_t>(b)) << 32 | static_cast<uint32_t>(c)));
  if (known_by_value(kind)) h = mix(h ^ value);
  for (size_t at = h & (slots - 1);; at = (at + 1) & (slots - 1)) {
    int32_t n = table[at];
    if (!n) {
      if (count == capacity) return lost |= kFull, count - 1;
      nodes[count] = {kind, type, a, b, c, 0, value};
      return table[at] = count++;
    }
    const Node& x = nodes[n];
    if (x.kind == kind && x.type == type && x.a == a && x.b == b && x.c == c && (!known_by_value(kind) || x.value == value))
      return n;
  }
}

int32_t constant(int32_t type, uint64_t value) { return make(kConst, type, 0, 0, 0, value); }
int32_t given(int32_t node, int32_t type, uint64_t value) { return node ? node : constant(type, value); }

uint64_t truncated(uint64_t value, int32_t bytes) { return bytes == 8 ? value : value & ((1ull << 8 * bytes) - 1); }

// Whether a node tells the bits that are there now.
bool holds(int32_t node, int32_t bytes, uint64_t value) {
  return unknown(node) || truncated(nodes[node].value, bytes) == truncated(value, bytes);
}

Cell& cell_at(uintptr_t address) {
  for (size_t at = mix(address) & (kCells - 1);; at = (at + 1) & (kCells - 1))
    if (cells[at].address == address || !cells[at].address) return cells[at];
}

const Region* region_at(uintptr_t address) {
  for (int i = 0; i < region_count; i++)
    if (address - regions[i].begin < regions[i].bytes) return &regions[i];
  return nullptr;
}

bool begins_element(const Region* r, uintptr_t address) {
  return r && (address - r->begin) % static_cast<size_t>(kBytes[r->type]) == 0;
}

// The node of an element that nobody has written; 0 where none begins at the address.
int32_t leaf_at(uintptr_t address, int32_t bytes, uint64_t value) {
  const Region* r = region_at(address);
  if (!begins_element(r, address) || kBytes[r->type] != bytes) return 0;
  auto element = static_cast<int32_t>((address - r->begin) / static_cast<size_t>(bytes));
  return make(kLoad, r->type, r->number, element, 0, truncated(value, bytes));
}

void put(uintptr_t address, int32_t node, int32_t bytes) {
  if (!cell_at(address).address) {
    const Region* r = region_at(address);
    if (!node && !begins_element(r, address)) return;
    if (r && !begins_element(r, address))
      put(address - (address - r->begin) % static_cast<size_t>(kBytes[r->type]), 0, 0);
    if (++used_cells > kCells / 2) {
      lost |= kFull;
      return;
    }
    cell_at(address).address = address;
    int32_t width = r ? kBytes[r->type] : bytes;
    for (int32_t at = width; at < bytes; at += width)  // other elements that it covers
      put(address + static_cast<uintptr_t>(at), 0, 0);
  }
  Cell& c = cell_at(address);
  c.node = node;
  c.bytes = bytes;
}

// The node whose bits lie at an address now; 0 where no data took part in them, or where somebody else has written.
int32_t get(uintptr_t address, int32_t bytes, uint64_t value) {
  const Cell& c = cell_at(address);
  if (!c.address) return leaf_at(address, bytes, value);
  if (!c.node || c.bytes != bytes) return 0;
  return holds(c.node, bytes, value) ? c.node : 0;
}

// The type of either half of a whole number; 0 of what has none.
int32_t half_of(int32_t type) { return type == kI64 ? kI32 : type == kI32 ? kI16 : type == kI16 ? kI8 : 0; }

int32_t wide_load(uintptr_t address, int32_t type, uint64_t value) {
  int32_t bytes = kBytes[type], half = bytes / 2;
  if (int32_t n = get(address, bytes, value)) return n;
  int32_t part = half_of(type);
  if (!part) return 0;
  uint64_t low = truncated(value, half), high = value >> 8 * half;
  int32_t a = wide_load(address, part, low), b = wide_load(address + half, part, high);
  if (!a && !b) return 0;
  return make(kPair, type, given(a, part, low), given(b, part, high), 0, value);
}

Path& path();

int32_t guarded(int32_t node, int32_t type, uint64_t value) {
  Path& p = path();
  for (int i = p.depth; i--;) {
    node = given(node, type, value);
    node = make(kGuard, nodes[node].type, p.guards[i].condition, p.guards[i].outcome, node, value);
  }
  return node;
}

// The running thread among all of a launch, in so many bits; not 0.
uint32_t writer() {
  uint64_t block = mix(fsr_block_index::x | uint64_t{fsr_block_index::y} << 32) ^ fsr_block_index::z;
  return (static_cast<uint32_t>(mix(block) << 10) | fsr_thread) + 1;
}

// Whether a value is what an element held, with something added: not where what is put in leaves nothing of that
// (and with 0, or with all bits set).
bool goes_on(int32_t node, int32_t old) {
  const Node& x = nodes[node];
  if (x.kind == kChosen) return true;  // at a place that data tells: of its own kind
  if (x.kind < kNamed || (x.a != old && x.b != old)) return false;
  const Node& other = nodes[x.a == old ? x.b : x.a];
  bool extreme = x.value == 0 || x.value == truncated(~uint64_t{0}, kBytes[x.type]);
  return !(x.b && other.kind == kConst && other.value == x.value && extreme);
}

// Whether a thread writes, under conditions on data, what another one has written in this launch under others. Who
// writes last tells only whether the others show: a flag that any of many threads sets.
bool covers_another(uintptr_t address, int32_t node) {
  const Cell& c = cell_at(address);
  if (!c.address || c.node < launched || !c.writer || c.writer == writer()) return false;
  return !(node && goes_on(node, c.node));
}

void store(uintptr_t address, int32_t node, int32_t type, uint64_t value, bool on_data = false) {
  if (unfollowed()) return;
  int32_t bytes = kBytes[type];
  if (node && nodes[node].kind == kPair && bytes >= 2) {
    const Node x = nodes[node];
    int32_t part = bytes == 8 ? kI32 : bytes == 4 ? kI16 : kI8;
    store(address, x.a, part, truncated(value, bytes / 2), on_data);
    store(address + bytes / 2, x.b, part, value >> 8 * (bytes / 2), on_data);
    return;
  }
  bool region = region_at(address), asked = region && (on_data || path().depth);
  bool covered = asked && covers_another(address, node);
  if (covered) lost |= kCovered;
  node = covered ? make(kUnknown, type, 0, 0, 0, 0) : guarded(node, type, value);
  if (!node && region) node = constant(type, value);
  put(address, node, bytes);
  if (region) cell_at(address).writer = asked ? writer() : 0;
}

uint64_t raw(bool x) { return x; }
uint64_t raw(uint8_t x) { return x; }
uint64_t raw(uint16_t x) { return x; }
uint64_t raw(uint32_t x) { return x; }
uint64_t raw(uint64_t x) { return x; }
template <class To, class T>
uint64_t raw_bits(T x) {
  To word;
  std::memcpy(&word, &x, sizeof word);
  return word;
}
uint64_t raw(_Float16 x) { return raw_bits<uint16_t>(x); }
uint64_t raw(float x) { return raw_bits<uint32_t>(x); }
uint64_t raw(double x) { return raw_bits<uint64_t>(x); }

}  // namespace

void traced_copy(void* to, const void* from, size_t bytes) {
  if (!cells) return;
  auto t = reinterpret_cast<uintptr_t>(to), f = reinterpret_cast<uintptr_t>(from);
  bool down = f < t && t < f + bytes;  // what lies behind is overwritten first, as by memmove
  for (size_t n = 0; n < bytes; n++) {
    size_t i = down ? bytes - 1 - n : n;
    Cell c = cell_at(f + i);
    const Region* r = c.address ? nullptr : region_at(f + i);
    if (begins_element(r, f + i) && static_cast<size_t>(kBytes[r->type]) <= bytes - i) {
      uint64_t value = 0;
      std::memcpy(&value, static_cast<const char*>(from) + i, static_cast<size_t>(kBytes[r->type]));
      c = {f + i, leaf_at(f + i, kBytes[r->type], value), kBytes[r->type]};
    }
    int32_t node = c.address && static_cast<size_t>(c.bytes) <= bytes - i ? c.node : 0;
    if (node) {
      uint64_t value = 0;
      std::memcpy(&value, static_cast<const char*>(from) + i, static_cast<size_t>(c.bytes));
      if (!holds(node, c.bytes, value)) node = 0;
    }
    put(t + i, node ? guarded(node, nodes[node].type, nodes[node].value) : 0, c.address ? c.bytes : 0);
  }
}

}  // namespace fsr

using namespace fsr;

extern "C" {

#define EXPORT __attribute__((visibility("default")))

// `nodes_at`: room for `room` nodes, zeroed.
EXPORT int fsr_trace_begin(void* nodes_at, int room) {
  nodes = static_cast<Node*>(nodes_at);
  capacity = room;
  count = launched = 1;
  if (!cells) {
    for (slots = 1; slots < 2 * static_cast<size_t>(room);) slots *= 2;
    table = pages<int32_t>(slots);
    cells = pages<Cell>(kCells);
    paths = pages<Path>(kThreads);
  } else {
    madvise(table, slots * sizeof *table, MADV_DONTNEED);
    madvise(cells, kCells * sizeof *cells, MADV_DONTNEED);
    madvise(paths, kThreads * sizeof *paths, MADV_DONTNEED);
  }
  used_cells = 0;
  region_count = 0;
  some_left_out = apart = in_part = false;
  lost = 0;
  return table && cells && paths;
}

// Elements of a buffer (of which constants are followed too), or a scalar argument: what is read from there is called
// (region, element).
EXPORT void fsr_trace_region(void* begin, unsigned elements, int type, int region, int buffer) {
  size_t bytes = static_cast<size_t>(elements) * static_cast<size_t>(kBytes[type]);
  if (buffer && region_count < 64) {
    regions[region_count++] = {reinterpret_cast<uintptr_t>(begin), bytes, type, region};
    return;
  }
  auto* at = static_cast<unsigned char*>(begin);
  for (unsigned i = 0; i < elements; i++, at += kBytes[type]) {
    uint64_t value = 0;
    std::memcpy(&value, at, static_cast<size_t>(kBytes[type]));
    put(reinterpret_cast<uintptr_t>(at), make(kLoad, type, region, static_cast<int32_t>(i), 0, value), kBytes[type]);
  }
}

// Which threads of a block are followed from now on: their numbers, or none for all. `alone`: they do not talk.
EXPORT void fsr_trace_threads(const unsigned* numbers, unsigned many, int alone) {
  some_left_out = many != 0;
  apart = alone;
  in_part = in_part || many;
  for (bool& left : left_out) left = many != 0;
  for (unsigned i = 0; i < many; i++)
    if (numbers[i] < kThreads) left_out[numbers[i]] = false;
}

// The nodes of a buffer's elements after the run; `written`: only of those that somebody has written.
EXPORT void fsr_trace_read(void* begin, unsigned elements, int type, int32_t* result, int written) {
  auto first = reinterpret_cast<uintptr_t>(begin);
  auto bytes = static_cast<size_t>(kBytes[type]);
  auto one = [&](size_t i) {
    uint64_t value = 0;
    uintptr_t at = first + i * bytes;
    std::memcpy(&value, reinterpret_cast<void*>(at), bytes);
    int32_t n = get(at, kBytes[type], value);
    if (!n && (type == kI32 || type == kI64)) n = wide_load(at, type, value);
    result[i] = n || !in_part ? given(n, type, value) : 0;
  };
  if (!written) {
    for (unsigned i = 0; i < elements; i++) one(i);
    return;
  }
  for (size_t c = 0; c < kCells; c++)
    if (cells[c].address - first < elements * bytes && (cells[c].address - first) % bytes == 0)
      one((cells[c].address - first) / bytes);
}

// A launch begins: no thread stands behind a branch. Answers how many nodes there are.
EXPORT int fsr_trace_launch() {
  if (paths) madvise(paths, kThreads * sizeof *paths, MADV_DONTNEED);
  return launched = count;
}

EXPORT unsigned fsr_trace_lost() { return lost; }

}  // extern "C"

namespace fsr {
namespace {
Path& path() { return paths[fsr_thread]; }
bool unfollowed() { return apart && some_left_out && left_out[fsr_thread]; }
bool aside() { return !apart && some_left_out && left_out[fsr_thread]; }

int32_t type_of(int32_t node) { return nodes[node].type; }

int32_t binary(int op, int type, int a, int b, uint64_t x, uint64_t y, uint64_t value) {
  if (!a && !b) return 0;
  return make(op, type, given(a, type, x), given(b, type, y), 0, value);
}
}  // namespace
}  // namespace fsr

extern "C" {

// A read that may stand where nothing lies, as what a branch not taken would have read: the signal's handler goes on at
// fsr_peek_missed then, which answers nought.
extern const char fsr_peek_begin[], fsr_peek_end[], fsr_peek_missed[];
uint64_t fsr_peek_1(const void*);
uint64_t fsr_peek_2(const void*);
uint64_t fsr_peek_4(const void*);
uint64_t fsr_peek_8(const void*);
unsigned char fsr_missed;
asm(R"(
  .text
fsr_peek_begin:
fsr_peek_1:
  movzbl (%rdi), %eax
  ret
fsr_peek_2:
  movzwl (%rdi), %eax
  ret
fsr_peek_4:
  movl (%rdi), %eax
  ret
fsr_peek_8:
  movq (%rdi), %rax
  ret
fsr_peek_end:
fsr_peek_missed:
  xorl %eax, %eax
  movb $1, fsr_missed(%rip)
  ret
)");
}

namespace fsr {
extern uintptr_t (*resume_at)(uintptr_t pc);  // state.h
uintptr_t after_fault(uintptr_t pc) {
  bool peeked = pc - reinterpret_cast<uintptr_t>(fsr_peek_begin) < static_cast<size_t>(fsr_peek_end - fsr_peek_begin);
  return peeked ? reinterpret_cast<uintptr_t>(fsr_peek_missed) : 0;
}
namespace {
struct Resumes {
  Resumes() { resume_at = after_fault; }
} resumes;

template <class T>
T guessed(const void* p) {
  uint64_t (*const peek[])(const void*) = {fsr_peek_1, fsr_peek_2, fsr_peek_4, fsr_peek_8};
  fsr_missed = 0;
  uint64_t bits = peek[sizeof(T) == 8 ? 3 : sizeof(T) / 2](p);
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace
}  // namespace fsr

extern "C" {

// A thread begins.
void fsr_t_enter() {
  path().depth = 0;
  path().popped = 0;
}

#define TYPED(T, name, type)                                                                                        \
  int fsr_t_binary_##name(int op, int a, int b, T x, T y, T r) { return binary(op, type, a, b, raw(x), raw(y), raw(r)); } \
  int fsr_t_unary_##name(int op, int a, T x, T r) {                                                                 \
    (void)x;                                                                                                        \
    return a ? make(op, type, a, 0, 0, raw(r)) : 0;                                                                 \
  }                                                                                                                 \
  int fsr_t_ternary_##name(int op, int a, int b, int c, T x, T y, T z, T r) {                                       \
    if (!a && !b && !c) return 0;                                                                                   \
    return make(op, type, given(a, type, raw(x)), given(b, type, raw(y)), given(c, type, raw(z)), raw(r));          \
  }                                                                                                                 \
  int fsr_t_compare_##name(int op, int a, int b, T x, T y, bool r) {                                                \
    if (!a && !b) return 0;                                                                                         \
    return make(op, kBool, given(a, type, raw(x)), given(b, type, raw(y)), 0, r);                                   \
  }                                                                                                                 \
  int fsr_t_convert_##name(int op, int a, T r) { return a ? make(op, type, a, 0, 0, raw(r)) : 0; }                  \
  int fsr_t_integer_##name(int op, int a, uint64_t from, T r) {                                                     \
    return a ? make(op, type, a, 0, 0, raw(r)) : make(kInteger, type, 0, 0, 0, from);                               \
  }                                                                                                                 \
  int fsr_t_select_##name(int s, int a, int b, bool c, T x, T y) {                                                  \
    if (!s) return c ? a : b;                                                                                       \
    if (a && a == b) return a;                                                                                      \
    a = given(a, type, raw(x)), b = given(b, type, raw(y));                                                         \
    return a == b ? a : make(kSelect, type, s, a, b, c ? raw(x) : raw(y));                                          \
  }                                                                                                                 \
  int fsr_t_load_##name(const void* p, int s, T r) {                                                                \
    if (fsr_missed) return fsr_missed = 0, make(kUnknown, type, 0, 0, 0, 0);                                        \
    if (unfollowed()) return 0;                                                                                     \
    int32_t n = wide_load(reinterpret_cast<uintptr_t>(p), type, raw(r));                                            \
    return s ? make(kGathered, type, given(n, type, raw(r)), s, 0, raw(r)) : n;                                     \
  }                                                                                                                 \
  T fsr_guess_##name(const void* p) { return guessed<T>(p); }                                                       \
  void fsr_t_store_##name(void* p, int s, int v, T x) {                                                             \
    if (s) v = make(kChosen, type, given(v, type, raw(x)), s, 0, raw(x));                                           \
    store(reinterpret_cast<uintptr_t>(p), v, type, raw(x));                                                         \
  }                                                                                                                 \
  void fsr_put_##name(bool c, bool turned, T x, T* p) {                                                             \
    if (c != turned) *p = x;                                                                                        \
  }                                                                                                                 \
  void fsr_t_put_##name(T* p, int s, bool c, bool turned, int v, T x) {                                             \
    if (unfollowed()) return;                                                                                       \
    if (!s && c == turned) return;                                                                                  \
    T old = s ? guessed<T>(p) : x;                                                                                  \
    if (fsr_missed) {                                                                                               \
      fsr_missed = 0, lost |= kPartial;                                                                             \
      return;                                                                                                       \
    }                                                                                                               \
    if (!s) return store(reinterpret_cast<uintptr_t>(p), v, type, raw(x));                                          \
    int32_t before = given(wide_load(reinterpret_cast<uintptr_t>(p), type, raw(old)), type, raw(old));              \
    v = given(v, type, raw(x));                                                                                     \
    uint64_t now = c != turned ? raw(x) : raw(old);                                                                 \
    if (v != before) v = turned ? make(kSelect, type, s, before, v, now) : make(kSelect, type, s, v, before, now);  \
    store(reinterpret_cast<uintptr_t>(p), v, type, now, true);                                                      \
  }                                                                                                                 \
  int fsr_t_rejoin_##name(int v, T x) {                                                                             \
    Path& p = path();                                                                                               \
    for (int i = p.depth + p.popped; i-- > p.depth;) {                                                              \
      v = given(v, type, raw(x));                                                                                   \
      v = make(kGuard, type_of(v), p.guards[i].condition, p.guards[i].outcome, v, raw(x));                          \
    }                                                                                                               \
    return v;                                                                                                       \
  }
TYPED(bool, i1, kBool)
TYPED(uint8_t, i8, kI8)
TYPED(uint16_t, i16, kI16)
TYPED(uint32_t, i32, kI32)
TYPED(uint64_t, i64, kI64)
TYPED(_Float16, half, kHalf)
TYPED(float, float, kFloat)
TYPED(double, double, kDouble)

// The address of an element: where data took part in it, as an expression.
int fsr_t_address(int add, int multiply, int a, int b, uint64_t base, uint64_t index, uint64_t scale) {
  if (!b && !a) return 0;
  int32_t steps = b ? make(multiply, kI64, b, constant(kI64, scale), 0, index * scale) : constant(kI64, index * scale);
  return make(add, kI64, given(a, kI64, base), steps, 0, base + index * scale);
}

// bfloat16 lives in 16 bits of an integer; these two stand in the headers and do nothing but convert.
float fsr_bfloat16_widen(uint16_t word) {
  uint32_t wide = static_cast<uint32_t>(word) << 16;
  float x;
  std::memcpy(&x, &wide, sizeof x);
  return x;
}
uint16_t fsr_bfloat16_round(float x) {
  auto word = static_cast<uint32_t>(raw(x));
  return x != x ? 0x7fff : static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}
int fsr_t_widen_bfloat16(int op, int a, float r) { return a ? make(op, kFloat, a, 0, 0, raw(r)) : 0; }
int fsr_t_round_bfloat16(int op, int a, uint16_t r) { return a ? make(op, kBfloat16, a, 0, 0, r) : 0; }

// A part of pairs, so many bits up; 0 where none is of that width.
static int32_t part_of(int32_t node, uint64_t shift, int32_t bytes) {
  while (nodes[node].kind == kPair && kBytes[nodes[node].type] > bytes) {
    auto half = static_cast<uint64_t>(4 * kBytes[nodes[node].type]);
    node = shift < half ? nodes[node].a : nodes[node].b;
    shift -= shift < half ? 0 : half;
  }
  return shift || kBytes[nodes[node].type] != bytes ? 0 : node;
}

// A pair taken apart: its lowest part, or (shifted) another one.
int fsr_t_truncate(int op, int shift, int a, int type, uint64_t r) {
  if (!a) return 0;
  const Node x = nodes[a];
  bool shifted = x.kind == shift && nodes[x.b].kind == kConst;
  int32_t from = shifted ? x.a : a;
  if (int32_t n = nodes[from].kind == kPair ? part_of(from, shifted ? nodes[x.b].value : 0, kBytes[type]) : 0) return n;
  return make(op, type, a, 0, 0, r);
}

// A branch that data decides; it is behind us where the block `join` begins.
void fsr_t_branch(int s, bool outcome, int join) {
  if (!s) return;
  Path& p = path();
  for (int i = 0; i < p.depth; i++)
    if (p.guards[i].condition == s && p.guards[i].join == join) return;
  if (p.depth + 1 >= static_cast<int>(kMaxGuards)) {
    lost |= kDeep;
    return;
  }
  p.guards[p.depth++] = {s, outcome, join};
  p.popped = 0;
}

void fsr_t_join(int join) {
  Path& p = path();
  p.popped = 0;
  while (p.depth && p.guards[p.depth - 1].join == join) p.depth--, p.popped++;
}

// A value that data took part in goes where it cannot be followed.
void fsr_t_lost(int s, int why) {
  if (s) lost |= static_cast<uint32_t>(why);
}

void fsr_t_copy(void* to, const void* from, uint64_t bytes) { traced_copy(to, from, bytes); }
void fsr_t_fill(void* to, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i++) {
    put(reinterpret_cast<uintptr_t>(to) + i, 0, 0);
  }
}
}
