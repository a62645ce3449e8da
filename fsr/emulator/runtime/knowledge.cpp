#include "knowledge.h"

#include <sys/mman.h>

#include <cstring>

namespace fsr {

namespace {

constexpr size_t kArena = 512u << 20;
unsigned char* arena;
size_t arena_used;
bool exhausted;

View* make(size_t count) {
  if (!arena) {
    void* p = mmap(nullptr, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    arena = static_cast<unsigned char*>(p);
  }
  size_t bytes = sizeof(View) + count * sizeof(Known);
  if (arena_used + bytes > kArena) return nullptr;
  View* view = reinterpret_cast<View*>(arena + arena_used);
  arena_used += bytes;
  view->count = 0;
  return view;
}

bool within(const Known* part, unsigned count, const View* whole) {
  unsigned at = 0;
  for (unsigned i = 0; i < count; i++) {
    while (at < whole->count && whole->known[at].who < part[i].who) at++;
    if (at < whole->count && whole->known[at].who == part[i].who && whole->known[at].upto >= part[i].upto) continue;
    return false;
  }
  return true;
}

}  // namespace

View* learn(View* a, const Known* added, unsigned count) {
  if (!count || (a && within(added, count, a))) return a;
  unsigned old = a ? a->count : 0;
  View* view = make(old + count);
  if (!view) {
    exhausted = true;
    return a;
  }
  for (unsigned i = 0, j = 0; i < old || j < count;) {
    Known next;
    if (j == count || (i < old && a->known[i].who < added[j].who)) {
      next = a->known[i++];
    } else if (i == old || added[j].who < a->known[i].who) {
      next = added[j++];
    } else {
      next = a->known[i].upto > added[j].upto ? a->known[i] : added[j];
      i++, j++;
    }
    view->known[view->count++] = next;
  }
  arena_used -= (old + count - view->count) * sizeof(Known);
  return view;
}

View* join(View* a, View* b) {
  if (!a || a == b) return b;
  return b ? learn(a, b->known, b->count) : a;
}

bool covers(const View* view, uint64_t block, uint32_t thread, uint32_t epoch, uint32_t clock) {
  if (!view) return false;
  auto upto = [view](uint64_t who) -> uint64_t {
    unsigned low = 0, high = view->count;
    while (low < high) {
      unsigned middle = (low + high) / 2;
      if (view->known[middle].who < who) low = middle + 1;
      else high = middle;
    }
    return low < view->count && view->known[low].who == who ? view->known[low].upto : 0;
  };
  return epoch < upto(block << 11) || (static_cast<uint64_t>(epoch) << 32 | clock) <= upto(name_thread(block, thread));
}

void forget_views() {
  arena_used = 0;
  exhausted = false;
}

bool views_exhausted() { return exhausted; }

}  // namespace fsr
