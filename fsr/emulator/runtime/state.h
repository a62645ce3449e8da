// State of the running launch, shared by the scheduler, the launcher and the recorder. One thread, so plain globals.
#pragma once
#include <cstddef>
#include <cstdint>

#define FSR_RUNTIME_IMPLEMENTATION
#include "fiber.h"
#include "fsr/runtime.h"

extern "C" {
extern unsigned fsr_thread;  // which the headers declare const (see there)
}

namespace fsr {

constexpr unsigned kMaxThreads = 1024, kWarp = 32, kMaxWarps = kMaxThreads / kWarp;
constexpr unsigned kDynamicShared = 256 * 1024;

enum FaultKind : int32_t {
  kNone = 0,
  kDivergentBarrier = 1,
  kTrap = 2,
  kUnsupported = 3,
  kOutOfBounds = 4,
  kStackOverflow = 5,
  kArithmetic = 6,
  kIllegalInstruction = 7,
  kSharedOverrun = 8,
};

// Where the child process tells the parent what went wrong; lives in memory that both map. Layout known to
// fsr/backends/host/abi.py.
struct FaultRecord {
  int32_t kind;
  int32_t line;      // 0: unknown, see pc
  uint64_t address;  // data address of an illegal access
  uint64_t pc;       // offset in the image of the faulting instruction, 0: outside of it
  int32_t writes;    // 1: the access was a write
  uint32_t thread;   // linear rank in the block
  uint32_t block[3];
  char text[200];
};

struct Thread {
  void* sp;
  unsigned stack;  // index in the pool
  int line;        // where it waits
  unsigned mask;   // lanes it waits for
  int predicate;
};

struct Warp {
  uint32_t alive;    // lanes parked at least once and not yet exited
  uint32_t ready;    // of these, free to run
  uint32_t barrier;  // waiting at a block barrier
  uint32_t waiting;  // waiting for lanes of their mask
  uint32_t active;   // waiting in fsr_activemask
  uint32_t votes;    // predicates of waiting lanes
  uint32_t voted;    // votes of the lanes released last
};

struct Launch {
  void (*thread)(void** args) = nullptr;
  void** args = nullptr;
  unsigned threads = 0, warps = 0, shared_bytes = 0;
  unsigned next = 0;      // first thread not yet started
  unsigned alive = 0;     // parked threads
  unsigned barrier = 0;   // of these, waiting at the block barrier
  int count = 0, all = 0, any = 0;  // results of the barrier released last
  uint64_t barriers = 0, warp_syncs = 0;
};

extern Launch launch;
extern Thread threads[kMaxThreads];
extern Warp warps[kMaxWarps];
extern fsr_post posts[kMaxThreads];
extern uint3 indices[kMaxThreads];
extern StackPool stacks;
extern FaultRecord* fault;

// Ends the launch with a fault: control returns to run_block's caller, parked threads are dropped.
[[noreturn]] __attribute__((format(printf, 3, 4))) void raise(FaultKind kind, int line, const char* format, ...);

inline void name_block(uint32_t* block) {
  block[0] = fsr_block_index::x, block[1] = fsr_block_index::y, block[2] = fsr_block_index::z;
}

// Runs the threads of the block that blockIdx names. False: a fault was raised.
bool run_block();

// Called by the scheduler in the instrumented build only.
#ifdef FSR_RECORD
void recorder_block_start();
void recorder_barrier();
void recorder_warp_release(unsigned warp, uint32_t lanes);
void recorder_block_end();
#else
inline void recorder_block_start() {}
inline void recorder_barrier() {}
inline void recorder_warp_release(unsigned, uint32_t) {}
inline void recorder_block_end() {}
#endif

}  // namespace fsr
