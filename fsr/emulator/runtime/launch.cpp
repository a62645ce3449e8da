// What the child process calls: set up once, run launches; and what catches illegal accesses.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "api.h"
#include "state.h"

#define EXPORT __attribute__((visibility("default")))

extern "C" {
alignas(4096) unsigned char fsr_dynamic_shared[fsr::kDynamicShared];
}

namespace fsr {
uintptr_t (*resume_at)(uintptr_t pc);

FaultRecord* fault;
SharedSegment shared_segment;

namespace {

constexpr size_t kPage = 4096, kLogBytes = 64 * 1024;
constexpr int kExitAfterSignal = 97;

// Comes behind the unit's variables in the thread-local segment and must stay poisoned. (Being ours it also makes the
// loader allocate the segment before anybody asks where it is.)
constexpr unsigned kTail = 2048;
thread_local unsigned char shared_tail[kTail];

char log_text[kLogBytes];
size_t log_used;
unsigned char poison = 0xFF;  // all ones: NaN in every floating type; alternates so that two runs differ

int find_segments(dl_phdr_info* info, size_t, void*) {
  uintptr_t here = reinterpret_cast<uintptr_t>(&find_segments);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& p = info->dlpi_phdr[i];
    ours |= p.p_type == PT_LOAD && here - (info->dlpi_addr + p.p_vaddr) < p.p_memsz;
  }
  if (!ours) return 0;
  shared_segment.image = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& p = info->dlpi_phdr[i];
    if (p.p_type == PT_LOAD) shared_segment.image_end = info->dlpi_addr + p.p_vaddr + p.p_memsz;
    if (p.p_type == PT_TLS) {
      shared_segment.base = static_cast<unsigned char*>(info->dlpi_tls_data);
      shared_segment.bytes = p.p_memsz;
    }
  }
  return 1;
}

void on_signal(int number, siginfo_t* info, void* raw) {
  const auto* context = static_cast<ucontext_t*>(raw);
  uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  uintptr_t pc = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
  bool memory = number == SIGSEGV || number == SIGBUS;
  if (uintptr_t next = memory && resume_at ? resume_at(pc) : 0) {
    static_cast<ucontext_t*>(raw)->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(next);
    return;
  }
  fault->kind = memory               ? (stacks.holds(address) ? kStackOverflow : kOutOfBounds)
                : number == SIGFPE ? kArithmetic
                                   : kIllegalInstruction;
  fault->line = 0;
  fault->address = address;
  if (memory && info->si_code == SI_KERNEL) {  // the processor tells no address
    static const char why[] = "an address that no memory can have, or an access that is not aligned as its type promises";
    std::memcpy(fault->text, why, sizeof why);
  }
  fault->writes = memory && (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  fault->pc = pc - shared_segment.image < shared_segment.image_end - shared_segment.image ? pc - shared_segment.image : 0;
  fault->thread = fsr_thread;
  name_block(fault->block);
  _exit(kExitAfterSignal);
}

void catch_signals() {
  static unsigned char alternate[16384];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

size_t opened_bytes() { return (launch.shared_bytes + kPage - 1) / kPage * kPage; }

void protect_dynamic(unsigned used) {
  static unsigned open_bytes = kDynamicShared;
  unsigned wanted = (used + kPage - 1) / kPage * kPage;
  if (wanted == open_bytes) return;
  if (wanted > open_bytes)
    mprotect(fsr_dynamic_shared, wanted, PROT_READ | PROT_WRITE);
  else
    mprotect(fsr_dynamic_shared + wanted, kDynamicShared - wanted, PROT_NONE);
  open_bytes = wanted;
}

}  // namespace

void start_launch(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block, unsigned bytes) {
  std::memset(fault, 0, sizeof *fault);
  launch = Launch{};
  launch.thread = entry->thread;
  launch.args = args;
  launch.threads = block[0] * block[1] * block[2];
  launch.warps = (launch.threads + kWarp - 1) / kWarp;
  launch.shared_bytes = bytes;
  fsr_grid_size::x = grid[0], fsr_grid_size::y = grid[1], fsr_grid_size::z = grid[2];
  fsr_block_size::x = block[0], fsr_block_size::y = block[1], fsr_block_size::z = block[2];
  unsigned t = 0;
  for (unsigned z = 0; z < block[2]; z++)
    for (unsigned y = 0; y < block[1]; y++)
      for (unsigned x = 0; x < block[0]; x++) indices[t++] = {x, y, z};
  protect_dynamic(bytes);
  catch_signals();
  block_at = [](uint64_t place) { return place; };
  limit = static_cast<uint64_t>(grid[0]) * grid[1] * grid[2];
  wanted = 0;
  unsigned fit = kMaxStacks / launch.threads;
  if (fit > kMaxFlights) fit = kMaxFlights;
  scarce = order.resident && order.resident < fit;
  if (!scarce) order.resident = fit;
  begin_blocks();
}

void poison_shared() {
  if (shared_segment.bytes) std::memset(shared_segment.base, poison, shared_segment.bytes);
  if (launch.shared_bytes) std::memset(fsr_dynamic_shared, poison, opened_bytes());
}

// Shared memory lies at one address whichever block runs: it moves out of the way of the next one.
void share_out(Flight* from, Flight* to) {
  size_t fixed = shared_segment.bytes, opened = opened_bytes();
  if (!(fixed + opened)) return;
  if (from && !from->shared) {
    void* p = mmap(nullptr, fixed + kDynamicShared, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) raise(kUnsupported, 0, "the shared memory of %zu more bytes does not fit", fixed + opened);
    from->shared = static_cast<unsigned char*>(p);
  }
  if (from) std::memcpy(from->shared, shared_segment.base, fixed);
  if (from) std::memcpy(from->shared + fixed, fsr_dynamic_shared, opened);
  if (to) std::memcpy(shared_segment.base, to->shared, fixed);
  if (to) std::memcpy(fsr_dynamic_shared, to->shared + fixed, opened);
}

bool shared_overrun() {
  for (unsigned i = 0; i < kTail; i++) {
    if (shared_tail[i] == poison) continue;
    fault->kind = kSharedOverrun;
    name_block(fault->block);
    std::snprintf(fault->text, sizeof fault->text, "memory behind the static __shared__ variables was written");
    return true;
  }
  for (unsigned i = launch.shared_bytes; i < opened_bytes(); i++) {
    if (fsr_dynamic_shared[i] == poison) continue;
    fault->kind = kSharedOverrun;
    name_block(fault->block);
    std::snprintf(fault->text, sizeof fault->text, "byte %u of dynamic shared memory written, the launch has %u bytes",
                  i, launch.shared_bytes);
    return true;
  }
  return false;
}

void next_poison() { poison ^= 1; }

}  // namespace fsr

using namespace fsr;

extern "C" {

EXPORT void fsr_host_init(unsigned char* stack_base, size_t stack_stride, unsigned stack_count, FaultRecord* record) {
  stacks = StackPool{stack_base, stack_stride, stack_count};
  fault = record;
  asm volatile("" : : "r"(&shared_tail[0]) : "memory");
  dl_iterate_phdr(find_segments, nullptr);
}

EXPORT int fsr_host_run(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                        unsigned shared_bytes) {
  order = Order{};
  start_launch(entry, args, grid, block, shared_bytes);
  next_poison();
  wanted = limit;
  return run_blocks() && !shared_overrun();
}

// Of a large grid only these blocks, by their linear number.
EXPORT int fsr_host_run_blocks(const fsr_entry* entry, void** args, const unsigned* grid, const unsigned* block,
                               unsigned shared_bytes, const uint64_t* numbers, uint64_t count) {
  static const uint64_t* chosen;
  order = Order{};
  start_launch(entry, args, grid, block, shared_bytes);
  next_poison();
  chosen = numbers;
  block_at = [](uint64_t place) { return chosen[place]; };
  limit = wanted = count;
  return run_blocks() && !shared_overrun();
}

EXPORT size_t fsr_host_log(const char** text) {
  *text = log_text;
  size_t used = log_used;
  log_used = 0;
  return used;
}

EXPORT void fsr_host_shared(unsigned char** base, size_t* bytes, uintptr_t* image,
                            unsigned char** dynamic) {
  *dynamic = fsr_dynamic_shared;
  *base = shared_segment.base;
  *bytes = shared_segment.bytes;
  *image = shared_segment.image;
}


int fsr_printf(const char* format, ...) {
  va_list rest;
  va_start(rest, format);
  int wanted = std::vsnprintf(log_text + log_used, kLogBytes - log_used, format, rest);
  va_end(rest);
  if (wanted > 0) log_used = log_used + static_cast<size_t>(wanted) < kLogBytes ? log_used + wanted : kLogBytes - 1;
  return wanted;
}

long long fsr_clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
}
