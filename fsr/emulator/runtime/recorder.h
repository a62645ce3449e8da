// What the recorder keeps: memory regions with their shadow, access sites with their statistics, faults.
//
// Every access of the instrumented build arrives in access() and is dealt with at once; nothing is logged. Only the
// addresses of one warp between two barriers are kept, to see which lanes access memory together.
#pragma once
#include "api.h"

namespace fsr {

enum Space : uint32_t { kGlobal = 0, kShared = 1, kImageData = 2, kLocal = 3 };
enum Access : uint32_t { kRead = 0, kWrite = 1, kAtomic = 2 };

constexpr unsigned kSectorsPerLine = 4, kSector = 32, kMaxRegions = 4096, kMaxSites = 4096, kMaxRows = 2048, kMaxFaults = 64;

// How strong an access is, in the terms of the PTX memory model.
enum Strength : uint32_t { kWeak = 0, kInBlock = 1, kOnDevice = 2 };

// Who touched memory when: the block (22 bits; recorded blocks are counted from 1), its epoch (16; counts block
// barriers), the thread's clock (12; counts what orders it inside an epoch), the thread (10), its strength (2), and
// whether it came through the read-only cache (1). 0: nobody. A counter at its end stays there, and is then taken as
// ordered: that can hide a race and never invents one.
using Stamp = uint64_t;
constexpr uint32_t kLastBlock = (1u << 22) - 1, kLastEpoch = 0xFFFF, kLastClock = 0xFFF;
inline uint32_t block_of(Stamp s) { return static_cast<uint32_t>(s >> 41) & kLastBlock; }
inline uint32_t epoch_of(Stamp s) { return static_cast<uint32_t>(s >> 25) & kLastEpoch; }
inline uint32_t clock_of(Stamp s) { return static_cast<uint32_t>(s >> 13) & kLastClock; }
inline uint32_t thread_of(Stamp s) { return static_cast<uint32_t>(s >> 3) & 0x3FF; }
inline uint32_t strength_of(Stamp s) { return static_cast<uint32_t>(s >> 1) & 3; }
inline bool read_only_of(Stamp s) { return s & 1; }

// An access that came before, and where in the code: an offset in the image, or a line with the highest bit set; 0:
// not known.
struct Earlier {
  Stamp stamp;
  uint32_t at;
  Earlier(Stamp stamp = 0, uint32_t at = 0) : stamp(stamp), at(at) {}
};

// The last write of a granule and up to three readers since: two of one block, one of an earlier block; where each was.
struct Cell {
  Stamp write, read, other_read, earlier_read;
  uint32_t write_at, read_at, other_read_at, earlier_read_at;
};

// What a place in shared memory is to one block under way.
struct Shadow {
  Cell* cells;
  uint8_t* defined;        // a bit a byte
};

struct Region {
  uintptr_t begin, end;
  uint32_t space;
  uint32_t index;          // the caller's number
  uint32_t shift;          // log2 of the bytes a cell stands for
  bool check_defined;      // reads of bytes never written are faults
  bool read_only;          // writes are
  bool updated;            // by read-modify-writes
  Cell* cells;
  uint8_t* defined;        // a bit a byte
  size_t capacity;         // bytes the shadow was made for
  Shadow* aside;           // shared memory: of each block under way
};

// One row: the addresses that the lanes of a warp accessed at the n-th execution of a site.
struct Row {
  uint32_t lanes;
  uintptr_t address[kWarp];
};

constexpr unsigned kScaledCounts = 7;  // of a Site: requests, lanes and the like, which grow with the blocks

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
  double single[kScaledCounts];  // what is scaled, as it was when only the block was done that stands for itself
  uint64_t* seen;      // bit a sector of the region
  uint32_t* hits;      // atomics: accesses of each 4 bytes of the region
  Row* rows;
  uint32_t rows_used, rows_made;
  uint64_t lanes_kept, lanes_dropped;
  uint32_t count[kWarp];
};

enum Finding : int32_t {
  kBounds = 1, kRace = 2, kUninitialised = 3, kMisaligned = 4, kInputChanged = 5, kState = 6, kUndefined = 7,
};

struct FoundFault {
  int32_t kind;  // a Finding
  int32_t line;
  uint64_t pc;
  uint64_t address;
  int32_t region;  // -1: none
  uint32_t thread, other;
  uint32_t block[3];
  uint32_t other_earlier_block;  // 1: the other thread belongs to an earlier block
  uint32_t other_at;             // where the other access is, as in Earlier
  char text[160];
};

// How memory is accessed, beyond Access: what the headers' FSR_ bits say, and the read-only cache.
struct Manner {
  uint32_t bits = 0;
  bool aligned = false, read_only = false;
  Strength strength() const { return !bits ? kWeak : bits & FSR_BLOCK ? kInBlock : kOnDevice; }
};

extern bool recording;
extern Region regions[kMaxRegions + 1];  // the last is local memory, which no address lies in
extern unsigned region_count;

Region* find_region(uintptr_t address, size_t bytes);
void shadow_reset();             // frees all regions
void shadow_launch_start();      // what earlier launches did is ordered before
void shadow_block_start();       // a block begins; shared memory is undefined again
void shadow_leave();             // another block's threads are about to run
void shadow_enter();             // and now they do
void shadow_barrier();
void shadow_release(unsigned warp, uint32_t lanes);
void shadow_access(Region* region, uintptr_t address, unsigned bytes, Access access, Manner manner, uintptr_t pc,
                   int line);
void settle();                   // decides on writes whose value was not known yet, and takes back what was shown stale
void report(int kind, const Region* region, uintptr_t address, uintptr_t pc, int line, Earlier other, const char* text);
void settle_doubts();            // at the end of a launch: reports what no update has made good
uint64_t fault_address_offset(uintptr_t pc);

// Order between threads: see order.cpp.
extern Stamp present;                      // block and epoch of the running block
extern uint32_t (*present_clocks)[kWarp];  // what its threads know of the lanes of their warps
extern uint32_t launch_first;              // the first block of this launch
inline Stamp now(Strength strength, bool read_only) {
  return present | static_cast<Stamp>(present_clocks[fsr_thread][fsr_thread % kWarp]) << 13 | fsr_thread << 3 |
         strength << 1 | read_only;
}
uint64_t place_and_thread(uintptr_t address, bool shared, Stamp whose);  // a key
bool known(Stamp s, bool shared);
inline bool happened_before(Stamp s, bool shared) {
  if (!s || block_of(s) < launch_first) return true;
  if (block_of(s) == block_of(present) && (epoch_of(s) < epoch_of(present) || thread_of(s) == fsr_thread)) return true;
  return known(s, shared);
}
bool earlier_launch(Stamp s);    // or none
void order_reset();              // a new recording
void order_launch_start();
void order_block_start();
void order_enter();
uint32_t block_in(unsigned slot);  // the block whose place among those under way it is, or was last
void order_barrier();
void order_grid_barrier();
void order_warp(unsigned warp, uint32_t lanes);
void order_fence(uint32_t bits);
// `shared`: shared memory, where one address is another place for every block.
void order_strong(uintptr_t address, bool shared, unsigned bytes, Access access, uint32_t bits);
bool stale_value(uintptr_t address, bool shared, unsigned bytes, unsigned char* value);  // what a relaxed load may still see

// Local memory: see locals.cpp.
extern unsigned local_count;     // arrays that kernels told of
void locals_reset();
void locals_access(uintptr_t address, unsigned bytes, Access access, uintptr_t pc);

void statistics_reset();         // a new launch
void statistics_block_start();
void statistics_add(Region* region, uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line);
void statistics_block(uintptr_t pc);
void statistics_flush();         // lanes meet again: what the current warp did is counted
void statistics_mark();          // remember the totals, to see how they grow with the number of blocks
void statistics_single();        // what was counted so far stands for itself when the rest is scaled
void statistics_scale(double factor);
void statistics_extrapolate(double executed, double marked, double previous, double total);

}  // namespace fsr
