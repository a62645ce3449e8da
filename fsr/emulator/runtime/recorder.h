// What the recorder keeps: memory regions with their shadow, access sites with their statistics, faults.
//
// Every access of the instrumented build arrives in access() and is dealt with at once; nothing is logged. Only the
// addresses of one warp between two barriers are kept, to see which lanes access memory together.
#pragma once
#include "api.h"

namespace fsr {

enum Space : uint32_t { kGlobal = 0, kShared = 1, kImageData = 2 };
enum Access : uint32_t { kRead = 0, kWrite = 1, kAtomic = 2 };

constexpr unsigned kSectorsPerLine = 4, kSector = 32, kMaxRegions = 4096, kMaxSites = 4096, kMaxRows = 2048, kMaxFaults = 64;

// Who touched memory when: epoch (32 bits; counts block barriers, never reset), clock of the lane (21; counts warp
// releases), thread (10), atomic (1). 0: nobody.
using Stamp = uint64_t;
inline Stamp make_stamp(uint32_t epoch, uint32_t clock, uint32_t thread, bool atomic) {
  return static_cast<Stamp>(epoch) << 32 | static_cast<Stamp>(clock & 0x1FFFFF) << 11 | thread << 1 | atomic;
}
inline uint32_t epoch_of(Stamp s) { return static_cast<uint32_t>(s >> 32); }
inline uint32_t clock_of(Stamp s) { return static_cast<uint32_t>(s >> 11) & 0x1FFFFF; }
inline uint32_t thread_of(Stamp s) { return static_cast<uint32_t>(s >> 1) & 0x3FF; }
inline bool atomic_of(Stamp s) { return s & 1; }

// The last write of a granule and up to three readers since: two of this block, one of an earlier block.
struct Cell {
  Stamp write, read, other_read, earlier_read;
};

struct Region {
  uintptr_t begin, end;
  uint32_t space;
  uint32_t index;          // the caller's number
  uint32_t shift;          // log2 of the bytes a cell stands for
  bool check_defined;      // reads of bytes never written are faults
  Cell* cells;
  uint8_t* defined;        // a bit a byte
  size_t capacity;         // bytes the shadow was made for
};

// One row: the addresses that the lanes of a warp accessed at the n-th execution of a site.
struct Row {
  uint32_t lanes;
  uintptr_t address[kWarp];
};

struct Site {
  uint64_t pc;
  uint64_t first_address;
  int32_t line;  // 0: from pc
  uint32_t space, access, bytes;
  uint32_t region;  // Region::index
  double requests, lanes, sectors, unique_sectors, wavefronts, serial, max_same;
  double block_sectors, lines;  // reads: sectors this site was the first of its block to touch; 128-byte lines
  // ---- not read by the caller
  uint32_t slot;  // of the region
  double marked_unique, marked_max;  // at the last mark, see sampling
  double previous_unique, previous_max;
  uint64_t* seen;      // bit a sector of the region
  uint32_t* hits;      // atomics: accesses of each 4 bytes of the region
  Row* rows;
  uint32_t rows_used, rows_made;
  uint64_t lanes_kept, lanes_dropped;
  uint32_t count[kWarp];
};

struct FoundFault {
  int32_t kind;  // 1 out of bounds, 2 race, 3 uninitialised
  int32_t line;
  uint64_t pc;
  uint64_t address;
  int32_t region;  // -1: none
  uint32_t thread, other;
  uint32_t block[3];
  uint32_t other_earlier_block;  // 1: the other thread belongs to an earlier block
  char text[160];
};

extern bool recording;
extern Region regions[kMaxRegions];
extern unsigned region_count;

Region* find_region(uintptr_t address, size_t bytes);
void shadow_reset();             // frees all regions
void shadow_block_start();       // shared memory is undefined again
void shadow_launch_start();      // what earlier launches did is ordered before
void shadow_barrier();
void shadow_release(unsigned warp, uint32_t lanes);
void shadow_fence();
void shadow_global_atomic();
void settle();                   // decides on writes whose value was not known yet
void shadow_access(Region* region, uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line);
void report(int kind, const Region* region, uintptr_t address, uintptr_t pc, int line, Stamp other, const char* text);
uint64_t fault_address_offset(uintptr_t pc);

void statistics_reset();         // a new launch
void statistics_block_start();
void statistics_add(Region* region, uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line);
void statistics_block(uintptr_t pc);
void statistics_flush();         // lanes meet again: what the current warp did is counted
void statistics_mark();          // remember the totals, to see how they grow with the number of blocks
void statistics_scale(double factor);
void statistics_extrapolate(double executed, double marked, double previous, double total);

}  // namespace fsr
