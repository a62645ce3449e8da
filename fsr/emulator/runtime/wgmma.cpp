// Products by warpgroups (wgmma.mma_async) and what orders them: sums that are under way, factors that must stay.
//
// The PTX ISA leaves open when, between the instruction and the wait for its group, factors are read and sums written.
// Here factors are read when the instruction is issued, and must be the same when it is waited for; sums hold a pattern
// (NaN) until then. Shared memory that asynchronous copies have brought must have been handed over
// (fence.proxy.async) by the thread that waited for them.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "api.h"
#include "state.h"

namespace fsr {
namespace {

constexpr unsigned kWord = 16;                 // bytes of a factor that lie together
constexpr uint32_t kStatic = 227 * 1024 + 1024;  // where static shared memory begins for descriptors, of 256 KiB in all

// A thread's sums of one instruction after the other; `group`: of the last.
struct Sums {
  float** places;
  float* values;
  unsigned count, group;
  bool flying;
};
// A word of a factor as it was read.
struct Read {
  const unsigned char* at;
  unsigned char bytes[kWord];
  unsigned group;
};
struct Queue {
  Sums* sums;
  Read* reads;
  unsigned sets, count, room, group;
  bool ordered;  // whether registers were touched before the last wgmma.fence only
};
// The thread that brought a word of shared memory, and how often it had handed over by then.
struct Mark {
  uint32_t writer, handed;  // writer: 1 + its rank; 0: nobody
};

Queue queues[kMaxFlights][kMaxThreads];
Mark* marks[kMaxFlights];
uint32_t handed[kMaxFlights][kMaxThreads];
bool used;

Queue& own() { return queues[flight->slot][fsr_thread]; }

void* grown(void* old, size_t bytes) {
  void* now = std::realloc(old, bytes);
  if (!now) raise(kUnsupported, 0, "products under way do not fit here");
  return now;
}

bool dynamic(const unsigned char* p) { return p >= fsr_dynamic_shared && p < fsr_dynamic_shared + kDynamicShared; }

}  // namespace

void wgmma_block_start() {
  for (unsigned t = 0; t < launch.threads; t++) handed[flight->slot][t]++;
  if (!used) return;
  for (unsigned t = 0; t < launch.threads; t++) {
    Queue& q = queues[flight->slot][t];
    for (unsigned s = 0; s < q.sets; s++) q.sums[s].flying = false;
    q.count = q.group = 0, q.ordered = false;
  }
}

void wgmma_arrived(const void* to, unsigned bytes) {
  auto p = static_cast<const unsigned char*>(to);
  if (!dynamic(p)) return;
  Mark*& own_marks = marks[flight->slot];
  if (!own_marks) own_marks = static_cast<Mark*>(std::calloc(kDynamicShared / kWord, sizeof(Mark)));
  if (!own_marks) raise(kUnsupported, 0, "what asynchronous copies have brought does not fit here");
  for (size_t word = (p - fsr_dynamic_shared) / kWord; word * kWord < p - fsr_dynamic_shared + size_t(bytes); word++)
    own_marks[word] = {fsr_thread + 1, handed[flight->slot][fsr_thread]};
}

}  // namespace fsr

using namespace fsr;

extern "C" {

uint32_t fsr_shared_address(const void* at, int line) {
  auto p = static_cast<const unsigned char*>(at);
  if (dynamic(p)) return static_cast<uint32_t>(p - fsr_dynamic_shared);
  if (p < shared_segment.base || p >= shared_segment.base + shared_segment.bytes)
    raise(kTrap, line, "the address in shared memory of what does not lie there");
  return kStatic + static_cast<uint32_t>(reinterpret_cast<uintptr_t>(shared_segment.base) % 1024) +
         static_cast<uint32_t>(p - shared_segment.base);
}

unsigned char* fsr_shared_place(uint64_t address, unsigned bytes, int line) {
  const unsigned char* last = shared_segment.base + shared_segment.bytes;
  unsigned char* at = fsr_dynamic_shared + address;
  bool inside = address + bytes <= kDynamicShared && address < kStatic;
  if (address >= kStatic) {
    uint64_t within = address - kStatic - reinterpret_cast<uintptr_t>(shared_segment.base) % 1024;
    inside = within + bytes <= shared_segment.bytes;
    at = const_cast<unsigned char*>(last - shared_segment.bytes) + within;
  }
  if (!inside) raise(kOutOfBounds, line, "an address (%llu) that is none of shared memory", static_cast<unsigned long long>(address));
  return at;
}

bool fsr_is_shared(const void* at) {
  auto p = static_cast<const unsigned char*>(at);
  return dynamic(p) || (p >= shared_segment.base && p < shared_segment.base + shared_segment.bytes);
}

static float without_subnormals(float v) {
  return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v;
}

float fsr_added(const float* p, float old, float v) {
  if (fsr_is_shared(p)) return old + v;
  return without_subnormals(without_subnormals(old) + without_subnormals(v));
}

void fsr_global_check(const void* at, int line) {
  if (fsr_is_shared(at))
    raise(kOutOfBounds, line, "an access of global memory at an address in shared memory");
}

const unsigned char* fsr_group_word(uint32_t address, int line) {
  const unsigned char* at = fsr_dynamic_shared + address;
  if (address >= kStatic)
    at = shared_segment.base + (address - kStatic) - reinterpret_cast<uintptr_t>(shared_segment.base) % 1024;
  bool inside = address >= kStatic ? at >= shared_segment.base && at + kWord <= shared_segment.base + shared_segment.bytes
                                   : address + kWord <= launch.shared_bytes;
  if (!inside) raise(kTrap, line, "wgmma.mma_async reads beyond the block's shared memory (byte %u)", address);
  if (dynamic(at) && marks[flight->slot]) {
    Mark m = marks[flight->slot][address / kWord];
    if (m.writer && m.handed == handed[flight->slot][m.writer - 1])
      raise(kTrap, line, "wgmma.mma_async reads what thread %u copied (byte %u) without fence.proxy.async since", m.writer - 1,
            address);
  }
  Queue& q = own();
  if (q.count == q.room) {
    q.room = q.room ? 2 * q.room : 1024;
    q.reads = static_cast<Read*>(grown(q.reads, q.room * sizeof(Read)));
  }
  Read& read = q.reads[q.count++];
  read.at = at, read.group = q.group;
  std::memcpy(read.bytes, at, kWord);
  return at;
}

float* fsr_group_sums(float* const* places, unsigned count, int line) {
  Queue& q = own();
  used = true;
  for (unsigned s = 0; s < q.sets; s++)
    if (q.sums[s].flying && q.sums[s].count == count && q.sums[s].places[0] == places[0]) {
      q.sums[s].group = q.group;
      return q.sums[s].values;
    }
  if (!q.ordered) raise(kTrap, line, "wgmma.mma_async without wgmma.fence since its registers may have been touched");
  unsigned s = 0;
  while (s < q.sets && (q.sums[s].flying || q.sums[s].count != count)) s++;
  if (s == q.sets) {
    q.sums = static_cast<Sums*>(grown(q.sums, (s + 1) * sizeof(Sums)));
    q.sets++;
    q.sums[s] = {static_cast<float**>(grown(nullptr, count * sizeof(float*))),
                 static_cast<float*>(grown(nullptr, count * sizeof(float))), count, 0, false};
  }
  Sums& sums = q.sums[s];
  sums.flying = true, sums.group = q.group;
  for (unsigned i = 0; i < count; i++) {
    sums.places[i] = places[i];
    sums.values[i] = *places[i];
    traced_copy(sums.values + i, places[i], sizeof(float));
    std::memset(places[i], 0xFF, sizeof(float));
  }
  return sums.values;
}

void fsr_group_fence() { own().ordered = true; }

void fsr_group_commit() { own().group++; }

void fsr_group_wait(unsigned prior, int line) {
  Queue& q = own();
  unsigned done = 0;
  for (; done < q.count && q.reads[done].group + prior < q.group; done++)
    if (std::memcmp(q.reads[done].at, q.reads[done].bytes, kWord))
      raise(kTrap, line, "shared memory (byte %u) that wgmma.mma_async reads was written before it was waited for",
            fsr_shared_address(q.reads[done].at, line));
  q.count -= done;
  std::memmove(q.reads, q.reads + done, q.count * sizeof(Read));
  for (unsigned s = 0; s < q.sets; s++) {
    Sums& sums = q.sums[s];
    if (!sums.flying || sums.group + prior >= q.group) continue;
    for (unsigned i = 0; i < sums.count; i++) {
      *sums.places[i] = sums.values[i];
      traced_copy(sums.places[i], sums.values + i, sizeof(float));
    }
    sums.flying = q.ordered = false;
  }
}

void fsr_proxy_fence() { handed[flight->slot][fsr_thread]++; }
}
