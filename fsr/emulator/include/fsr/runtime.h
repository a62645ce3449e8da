// The ABI between the CUDA language headers (fsr/cuda.h and what it includes) and the host device's runtime.
//
// How a unit is built: `c++ -std=c++17 -I <this folder's parent> -include fsr/cuda.h unit.cpp`, where fsr/cuda.h
// includes this file first and unit.cpp is the candidate's text followed by one FSR_ENTRY line a launch. All
// functions below live in the runtime, which is compiled once without instrumentation and linked into each unit.
// Macros set by the toolchain: FSR_RECORD in the instrumented build (absent otherwise).
//
// One operating-system thread executes everything. CUDA threads of a block run one after the other; one that
// waits (barrier, warp exchange) is parked on its own stack. So between two calls into this ABI nothing else
// runs, and plain load-modify-store is atomic.
//
// Lines: language headers take them as a last default argument `int line = __builtin_LINE()`, which is the line
// of the caller in the candidate's source, also through inlining.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};
// The types of threadIdx and its like. Static scalar members, since a compiler knows of a scalar that is const that
// it never changes, and of a structure with constructors that it may: scalars stay in registers and the recorder's
// instrumentation leaves them alone. Defined in the runtime, where they are not const.
#ifdef FSR_RUNTIME_IMPLEMENTATION
#define FSR_INDEX_CONST
#else
#define FSR_INDEX_CONST const
#endif
#define FSR_INDEX(name)                                \
  struct name {                                        \
    static FSR_INDEX_CONST unsigned x, y, z;           \
    operator uint3() const { return uint3{x, y, z}; }  \
  };
FSR_INDEX(fsr_thread_index)
FSR_INDEX(fsr_block_index)
FSR_INDEX(fsr_block_size)
FSR_INDEX(fsr_grid_size)
#undef FSR_INDEX

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  dim3(const fsr_thread_index& v) : x(v.x), y(v.y), z(v.z) {}
  dim3(const fsr_block_index& v) : x(v.x), y(v.y), z(v.z) {}
  dim3(const fsr_block_size& v) : x(v.x), y(v.y), z(v.z) {}
  dim3(const fsr_grid_size& v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

// Storage of CUDA's memory spaces. __shared__ is thread-local storage because all of a unit's thread-local
// variables, templates' included, form one contiguous segment that the runtime can find, poison and check.
// `extern __shared__ T name[];` never reaches the compiler: the toolchain rewrites it to a pointer to
// fsr_dynamic_shared.
#define __shared__ thread_local
#define warpSize 32

extern "C" {

#ifndef FSR_RUNTIME_IMPLEMENTATION
// Const: within one CUDA thread it never changes, so the compiler may keep it in a register across calls. (The
// runtime calls the kernel anew for each thread, so nothing is kept from one thread to the next.)
extern const unsigned fsr_thread;  // linear rank in the block: x + blockDim.x * (y + blockDim.y * z)
#endif

extern unsigned char fsr_dynamic_shared[];  // page-aligned; the launch's shared_bytes of it may be used

// ---- block barriers. Threads that have exited do not count. Waiting at different lines is a fault.
void fsr_syncthreads(int line);
int fsr_syncthreads_count(int predicate, int line);
int fsr_syncthreads_and(int predicate, int line);
int fsr_syncthreads_or(int predicate, int line);
// Barrier `name` of so many threads (0: all of the block); those that do not wait only arrive.
void fsr_named_barrier(unsigned name, unsigned threads, int waits, int line);

// ---- warp level. Exited lanes named in a mask are taken as arrived; a mask without the caller is a fault.
void fsr_syncwarp(unsigned mask, int line);
struct fsr_post {
  alignas(16) unsigned char bytes[16];
};
// Posts `bytes` (at most 16) of `value`, waits for all lanes of `mask`, returns the posts of the warp's 32 lanes.
// Valid until this thread's next call into the runtime. The posts of lanes outside the mask or exited are poison.
const fsr_post* fsr_warp_exchange(const void* value, unsigned bytes, unsigned mask, int line);
// Bit per lane of `mask` whose predicate is nonzero (exited lanes: 0). The base of ballot, any, all.
unsigned fsr_ballot(unsigned mask, int predicate, int line);
// The lanes that arrive here together: waits until no other lane of the warp can move, as a converging GPU would.
unsigned fsr_activemask(int line);

// ---- others
[[noreturn]] void fsr_trap(const char* what, int line);         // __trap(), assert: the launch fails
[[noreturn]] void fsr_unsupported(const char* what, int line);  // a construct without a host meaning, at run time
[[noreturn]] void fsr_misaligned(const void* address, unsigned bytes);  // a vector is read or written where none may stand
int fsr_printf(const char* format, ...);  // device printf: text goes to the launch's log, at most 64 KiB of it
long long fsr_clock64();                  // nanoseconds, monotonic
// Lets other threads of the block move on; call it in everything that a spin loop may be made of (atomicCAS,
// atomicExch, __nanosleep, volatile-like loads): it is a counter most of the time.
void fsr_yield(int line);

// ---- asynchronous copies to shared memory. `zeros` of the bytes are not read but zero.
void fsr_async_check(const void* to, const void* from, size_t bytes, size_t zeros, int line);  // a fault if it may not be
void fsr_async_copy(void* to, const void* from, size_t bytes, size_t zeros);
void fsr_async_commit();                      // what was issued since the last call is a group
void fsr_async_wait(size_t prior, int line);  // all but so many groups of this thread are complete

// ---- addresses of inline PTX
uint32_t fsr_shared_address(const void* at, int line);  // as instructions are told of shared memory
unsigned char* fsr_shared_place(uint64_t address, unsigned bytes, int line);  // and back; a fault beyond shared memory
void fsr_global_check(const void* at, int line);        // a fault if it lies in shared memory
// What atomicAdd leaves at p. A float is added to global memory without subnormal values, whatever the compiler's flags say:
// operands and sum become zeros of their sign (PTX ISA, atom.add.f32). In shared memory they count.
float fsr_added(const float* p, float old, float v);
bool fsr_is_shared(const void* at);  // whether it lies in the block's shared memory, static or dynamic

// ---- products by warpgroups: see runtime/wgmma.cpp
const unsigned char* fsr_group_word(uint32_t address, int line);     // 16 bytes that a product of this thread reads
float* fsr_group_sums(float* const* places, unsigned count, int line);  // the sums of this thread, which are under way then
void fsr_group_fence();
void fsr_group_commit();
void fsr_group_wait(unsigned prior, int line);
void fsr_proxy_fence();

// Waits for all threads of the grid; a fault unless the launch is cooperative.
void fsr_syncgrid(int line);

// What a strong operation or a fence is, in the terms of the PTX memory model. Device scope unless FSR_BLOCK.
enum fsr_how : unsigned {
  FSR_LOAD = 1, FSR_STORE = 2, FSR_UPDATE = 3, FSR_ACQUIRE = 4, FSR_RELEASE = 8, FSR_SEQUENTIAL = 16, FSR_BLOCK = 32,
  FSR_STRONG = 64,  // set by the recorder
};
#ifdef FSR_RECORD
// Tells the recorder of a strong access. Call it once an operation, before the memory is touched.
void fsr_note_strong(const volatile void* address, unsigned bytes, unsigned how, int line);
void fsr_note_fence(unsigned how, int line);
// And of a load through the read-only cache, which must not see what the launch itself writes.
void fsr_note_read_only(const void* address, unsigned bytes, int line);
// And of a weak access (FSR_LOAD or FSR_STORE) that the headers make where the compiler's instrumentation does not see it;
// `caller`: an address in the code that stands for it (null: where this is called).
void fsr_note_plain(const void* address, unsigned bytes, unsigned how, int line, const void* caller = nullptr);
// And of an asynchronous copy that is complete.
void fsr_note_arrival(const void* address, unsigned bytes, int line);
// And of an array of the running thread that a GPU keeps in local memory.
void fsr_note_local(const volatile void* array, unsigned bytes);
// And of what a warp's tensor core does: multiplications and additions, counted as those of halves would take as long.
void fsr_note_tensor(double operations);
#else
static inline void fsr_note_strong(const volatile void*, unsigned, unsigned, int) {}
static inline void fsr_note_fence(unsigned, int) {}
static inline void fsr_note_read_only(const void*, unsigned, int) {}
static inline void fsr_note_plain(const void*, unsigned, unsigned, int, const void* = nullptr) {}
static inline void fsr_note_arrival(const void*, unsigned, int) {}
static inline void fsr_note_local(const volatile void*, unsigned) {}
static inline void fsr_note_tensor(double) {}
#endif
}  // extern "C"

// ---- entries: how the runtime calls a kernel
struct fsr_entry {
  void (*thread)(void** args);        // runs the calling CUDA thread once
  unsigned count;                     // parameters
  const unsigned* sizes;              // bytes of each
  const char* kinds;                  // 'p' pointer, 'f' floating point, 'i' signed, 'u' unsigned, 's' anything else
};

#ifndef FSR_RUNTIME_IMPLEMENTATION
constexpr fsr_thread_index threadIdx{};
constexpr fsr_block_index blockIdx{};
constexpr fsr_block_size blockDim{};
constexpr fsr_grid_size gridDim{};

static inline unsigned fsr_lane() { return fsr_thread & 31u; }

// Every read-modify-write is built from this: `f` maps the old value to the new one; returns the old value.
// The recorder sees one atomic access and not the load and store behind it.
template <class T>
struct alignas(T) fsr_bytes_of {
  unsigned char bytes[sizeof(T)];
};
template <class T, class F>
static inline __attribute__((always_inline)) T fsr_atomic_update(T* address, int line, F f, unsigned how = 0) {
  using Bits = std::conditional_t<std::is_scalar_v<T>, T, fsr_bytes_of<T>>;  // atomics take no type with a copy of its own
  static_assert(sizeof(Bits) == sizeof(T));  // makes Bits complete: clang before 19 asks no template what it is
  fsr_note_strong(address, sizeof(T), how | FSR_UPDATE, line);
  T old;
  __atomic_load(reinterpret_cast<Bits*>(address), reinterpret_cast<Bits*>(&old), __ATOMIC_RELAXED);
  T now = f(old);
  __atomic_store(reinterpret_cast<Bits*>(address), reinterpret_cast<Bits*>(&now), __ATOMIC_RELAXED);
  return old;
}

template <class T>
constexpr char fsr_kind() {
  using U = std::remove_cv_t<T>;
  return std::is_pointer_v<U>          ? 'p'
         : std::is_floating_point_v<U> ? 'f'
         : std::is_integral_v<U>       ? (std::is_signed_v<U> ? 'i' : 'u')
                                       : 's';
}

#if defined(FSR_RECORD) && defined(__clang__)
#define FSR_UNRECORDED __attribute__((no_sanitize("thread"), no_sanitize("coverage"), no_sanitize("undefined")))
#elif defined(FSR_RECORD)
#define FSR_UNRECORDED __attribute__((no_sanitize_thread, no_sanitize_coverage, no_sanitize_undefined))
#else
#define FSR_UNRECORDED
#endif

// Of several functions of one name the one that returns nothing: C's own headers declare `index` and the like.
template <class... Args>
constexpr auto fsr_pick(void (*kernel)(Args...)) {
  return kernel;
}

template <auto Kernel>
struct fsr_entry_of;
template <class... Args, void (*Kernel)(Args...)>
struct fsr_entry_of<Kernel> {
  template <std::size_t... I>
  FSR_UNRECORDED static inline void call(void** args, std::index_sequence<I...>) {
    Kernel(*static_cast<std::remove_cv_t<Args>*>(args[I])...);
  }
  FSR_UNRECORDED static void thread(void** args) { call(args, std::index_sequence_for<Args...>{}); }
  static constexpr unsigned sizes[sizeof...(Args) + 1] = {static_cast<unsigned>(sizeof(Args))..., 0u};
  static constexpr char kinds[sizeof...(Args) + 1] = {fsr_kind<Args>()..., '\0'};
};

#define FSR_ENTRY(index, ...)                                                                               \
  extern "C" __attribute__((visibility("default"), used)) const fsr_entry fsr_entry_##index;                \
  const fsr_entry fsr_entry_##index = {                                                                     \
      fsr_entry_of<fsr_pick(&__VA_ARGS__)>::thread, static_cast<unsigned>(sizeof(fsr_entry_of<fsr_pick(&__VA_ARGS__)>::kinds)) - 1u, \
      fsr_entry_of<fsr_pick(&__VA_ARGS__)>::sizes, fsr_entry_of<fsr_pick(&__VA_ARGS__)>::kinds};
#endif  // FSR_RUNTIME_IMPLEMENTATION
