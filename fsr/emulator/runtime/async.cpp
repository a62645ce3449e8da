// Asynchronous copies into shared memory (cp.async): read where they are issued, written where they are waited for.
//
// The PTX ISA leaves open when between the two a copy takes place. Here its place holds a pattern (NaN) meanwhile, so that
// who reads it too early, or has not finished with what stood there before, computes something else.
#include <cstdlib>
#include <cstring>

#include "api.h"
#include "state.h"

namespace fsr {
namespace {

struct Copy {
  alignas(16) unsigned char data[16];
  void* to;
  unsigned bytes, group;
};

// What a thread has under way, in the order of issue; `group` counts its commits.
struct Queue {
  Copy* copies;
  unsigned count, room, group;
};

Queue queues[kMaxFlights][kMaxThreads];
bool used;

Queue& own() { return queues[flight->slot][fsr_thread]; }

bool in_shared(const void* at, unsigned bytes) {
  auto p = static_cast<const unsigned char*>(at);
  bool dynamic = p >= fsr_dynamic_shared && p + bytes <= fsr_dynamic_shared + kDynamicShared;
  return dynamic || (p >= shared_segment.base && p + bytes <= shared_segment.base + shared_segment.bytes);
}

}  // namespace

void async_block_start() {
  wgmma_block_start();
  if (!used) return;
  for (unsigned t = 0; t < launch.threads; t++) queues[flight->slot][t].count = queues[flight->slot][t].group = 0;
}

}  // namespace fsr

using namespace fsr;

extern "C" {

void fsr_async_check(const void* to, const void* from, size_t bytes, size_t zeros, int line) {
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeros > bytes)
    raise(kTrap, line, "an asynchronous copy of %zu bytes, %zu of them zeros: 4, 8 or 16 can be copied", bytes, zeros);
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % bytes)
    raise(kUnaligned, line, "an asynchronous copy of %zu bytes from or to an address that is no multiple of that", bytes);
  if (!in_shared(to, static_cast<unsigned>(bytes)) || in_shared(from, 1))
    raise(kTrap, line, "an asynchronous copy that does not go from global to shared memory");
}

void fsr_async_copy(void* to, const void* from, size_t bytes, size_t zeros) {
  Queue& q = own();
  if (q.count == q.room) {
    q.room = q.room ? 2 * q.room : 16;
    q.copies = static_cast<Copy*>(std::realloc(q.copies, q.room * sizeof(Copy)));
    if (!q.copies) raise(kUnsupported, 0, "%u asynchronous copies of a thread do not fit here", q.room);
  }
  used = true;
  Copy& copy = q.copies[q.count++];
  copy.to = to, copy.bytes = static_cast<unsigned>(bytes), copy.group = q.group;
  std::memset(copy.data, 0, sizeof copy.data);
  std::memcpy(copy.data, from, bytes - zeros);
  traced_copy(copy.data, from, bytes - zeros);
  std::memset(to, 0xFF, bytes);
}

void fsr_async_commit() { own().group++; }

void fsr_async_wait(size_t prior, int line) {
  Queue& q = own();
  unsigned done = 0;
  for (; done < q.count && q.copies[done].group + prior < q.group; done++) {
    const Copy& copy = q.copies[done];
    fsr_note_arrival(copy.to, copy.bytes, line);
    std::memcpy(copy.to, copy.data, copy.bytes);
    traced_copy(copy.to, copy.data, copy.bytes);
    wgmma_arrived(copy.to, copy.bytes);
  }
  q.count -= done;
  std::memmove(q.copies, q.copies + done, q.count * sizeof(Copy));
}
}
