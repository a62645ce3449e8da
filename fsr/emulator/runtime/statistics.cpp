// Access statistics per site: which lanes of a warp access memory together, and what that costs a GPU.
//
// Lanes run one after the other, so the n-th access of each lane at one site is taken as one warp-level request.
// The count starts anew wherever lanes meet: at block barriers and at the end of a warp's run.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "recorder.h"

namespace fsr {

namespace {

Site sites[kMaxSites];
unsigned site_count;
constexpr unsigned kTable = 4 * kMaxSites;
uint32_t site_table[kTable];  // index + 1

struct Block {
  uint64_t pc;
  double warps;
  double single;  // as in Site
  uint32_t count[kWarp];
  uint32_t touched;
};
constexpr unsigned kMaxBlocks = 16384, kBlockTable = 4 * kMaxBlocks;
Block blocks[kMaxBlocks];
unsigned block_count;
uint32_t block_table[kBlockTable];
uint32_t touched_sites[kMaxSites], touched_blocks[kMaxBlocks];
unsigned touched_site_count, touched_block_count;
unsigned current_warp = ~0u;

// Per region and sector, the number of the last block that read it: what one block reads again costs no L2 traffic
// while the L1 keeps it.
uint32_t* last_reader[kMaxRegions];
uint32_t block_number;

unsigned hash(uintptr_t key, unsigned size) {
  return static_cast<unsigned>((key * 0x9E3779B97F4A7C15ull) >> 40) & (size - 1);
}

size_t region_bytes(const Site& s) { return regions[s.slot].capacity; }

void free_site(Site& s) {
  if (s.seen) munmap(s.seen, region_bytes(s) / kSector / 8 + 16);
  if (s.hits) munmap(s.hits, region_bytes(s) + 16);
  std::free(s.rows);
}

void* lazily(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

Site* find_site(unsigned region, unsigned bytes, Access access, uintptr_t pc, int line) {
  uintptr_t key = (pc * 4 + access) ^ (static_cast<uintptr_t>(region) << 50) ^ (static_cast<uintptr_t>(bytes) << 56);
  for (unsigned at = hash(key, kTable);; at = (at + 1) & (kTable - 1)) {
    if (!site_table[at]) {
      if (site_count == kMaxSites) return nullptr;
      Site& s = sites[site_count];
      s = Site{};
      s.pc = pc, s.line = line, s.slot = region, s.region = regions[region].index, s.bytes = bytes, s.access = access;
      s.space = regions[region].space;
      if (s.space == kGlobal || s.space == kImageData) s.seen = static_cast<uint64_t*>(lazily(region_bytes(s) / kSector / 8 + 16));
      if (access == kAtomic) s.hits = static_cast<uint32_t*>(lazily(region_bytes(s) + 16));
      site_table[at] = ++site_count;
      return &s;
    }
    Site& s = sites[site_table[at] - 1];
    if (s.pc == pc && s.slot == region && s.access == access && s.bytes == bytes) return &s;
  }
}

uint32_t* readers_of(unsigned slot) {
  uint32_t*& readers = last_reader[slot];
  if (!readers) readers = static_cast<uint32_t*>(lazily((regions[slot].capacity / kSector + 2) * sizeof(uint32_t)));
  return readers;
}

void count_sectors(Site& s, const Row& row, double weight) {
  uintptr_t distinct[2 * kWarp];
  unsigned n = 0;
  uintptr_t origin = regions[s.slot].begin / kSector;
  for (uint32_t rest = row.lanes; rest; rest &= rest - 1) {
    uintptr_t a = row.address[__builtin_ctz(rest)];
    for (uintptr_t q = a / kSector; q <= (a + s.bytes - 1) / kSector && n < 2 * kWarp; q++) {
      unsigned i = n;
      while (i && distinct[i - 1] != q) i--;
      if (!i) distinct[n++] = q;
    }
  }
  s.sectors += n * weight;
  unsigned lines = 0;
  for (unsigned i = 0; i < n; i++) {
    unsigned j = i;
    while (j && distinct[j - 1] / kSectorsPerLine != distinct[i] / kSectorsPerLine) j--;
    lines += !j;
  }
  s.lines += lines * weight;
  if (!s.seen) return;
  uint32_t* readers = s.access == kRead ? readers_of(s.slot) : nullptr;
  for (unsigned i = 0; i < n; i++) {
    uintptr_t bit = distinct[i] - origin;
    uint64_t mask = 1ull << (bit % 64);
    s.unique_sectors += !(s.seen[bit / 64] & mask);
    s.seen[bit / 64] |= mask;
    if (readers && readers[bit] != block_number) {
      readers[bit] = block_number;
      s.block_sectors += weight;
    }
  }
}

// Passes of shared memory: 32 banks of 4 bytes; 8-byte accesses go by half warps, 16-byte ones by quarters.
unsigned wavefronts(const Row& row, unsigned bytes) {
  unsigned group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8, total = 0;
  for (unsigned first = 0; first < kWarp; first += group) {
    uintptr_t words[64];
    unsigned n = 0, load[32] = {}, most = 0;
    uint32_t lanes = group == 32 ? row.lanes : row.lanes >> first & ((1u << group) - 1);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
      uintptr_t a = row.address[first + static_cast<unsigned>(__builtin_ctz(rest))];
      for (uintptr_t w = a / 4; w <= (a + bytes - 1) / 4 && n < 64; w++) {
        unsigned i = n;
        while (i && words[i - 1] != w) i--;
        if (i) continue;
        words[n++] = w;
        unsigned passes = ++load[w % 32];
        most = passes > most ? passes : most;
      }
    }
    total += most;
  }
  return total;
}

// Passes of constant memory: one for each word of 4 bytes that the lanes read.
unsigned different_words(const Row& row) {
  uintptr_t words[kWarp];
  unsigned n = 0;
  for (uint32_t rest = row.lanes; rest; rest &= rest - 1) {
    uintptr_t w = row.address[__builtin_ctz(rest)] / 4;
    unsigned i = n;
    while (i && words[i - 1] != w) i--;
    if (!i) words[n++] = w;
  }
  return n;
}

void count_same(Site& s, const Row& row, double weight) {
  unsigned most = 0;
  for (uint32_t rest = row.lanes; rest; rest &= rest - 1) {
    uintptr_t a = row.address[__builtin_ctz(rest)];
    unsigned same = 0;
    for (uint32_t r = rest; r; r &= r - 1) same += row.address[__builtin_ctz(r)] == a;
    most = same > most ? same : most;
    if (s.hits) {
      uint32_t hits = ++s.hits[(a - regions[s.slot].begin) / 4];
      if (hits > s.max_same) s.max_same = hits;
    }
  }
  s.serial += most * weight;
}

void flush_site(Site& s) {
  double weight = s.lanes_kept ? static_cast<double>(s.lanes_kept + s.lanes_dropped) / s.lanes_kept : 1.0;
  s.lanes += static_cast<double>(s.lanes_kept + s.lanes_dropped);
  s.requests += s.rows_used * weight;
  for (unsigned i = 0; i < s.rows_used; i++) {
    const Row& row = s.rows[i];
    if (s.space == kShared) s.wavefronts += wavefronts(row, s.bytes) * weight;
    else count_sectors(s, row, weight);
    if (s.space == kImageData) s.wavefronts += different_words(row) * weight;
    if (s.access == kAtomic) count_same(s, row, weight);
  }
  s.rows_used = 0;
  s.lanes_kept = s.lanes_dropped = 0;
  std::memset(s.count, 0, sizeof s.count);
}

bool more_rows(Site& s) {
  if (s.rows_made == kMaxRows) return false;
  unsigned wanted = s.rows_made ? s.rows_made * 2 : 16;
  void* grown = std::realloc(s.rows, wanted * sizeof(Row));
  if (!grown) return false;
  s.rows = static_cast<Row*>(grown);
  s.rows_made = wanted;
  return true;
}

}  // namespace

void statistics_reset() {
  for (unsigned i = 0; i < site_count; i++) free_site(sites[i]);
  for (unsigned i = 0; i < kMaxRegions; i++) {
    if (last_reader[i]) munmap(last_reader[i], (regions[i].capacity / kSector + 2) * sizeof(uint32_t));
    last_reader[i] = nullptr;
  }
  block_number = 0;
  site_count = block_count = touched_site_count = touched_block_count = 0;
  std::memset(site_table, 0, sizeof site_table);
  std::memset(block_table, 0, sizeof block_table);
  current_warp = ~0u;
}

void statistics_block_start() { ++block_number; }

void statistics_flush() {
  for (unsigned i = 0; i < touched_site_count; i++) flush_site(sites[touched_sites[i]]);
  touched_site_count = 0;
  for (unsigned i = 0; i < touched_block_count; i++) {
    Block& b = blocks[touched_blocks[i]];
    uint32_t most = 0;
    for (uint32_t& count : b.count) {
      most = count > most ? count : most;
      count = 0;
    }
    b.warps += most;
    b.touched = 0;
  }
  touched_block_count = 0;
}

void statistics_add(Region* region, uintptr_t address, unsigned bytes, Access access, uintptr_t pc, int line) {
  if (fsr_thread / kWarp != current_warp) {
    statistics_flush();
    current_warp = fsr_thread / kWarp;
  }
  Site* s = find_site(static_cast<unsigned>(region - regions), bytes, access, pc, line);
  if (!s) return;
  if (!s->rows_used && !s->lanes_dropped) {
    if (!s->first_address) s->first_address = address;
    touched_sites[touched_site_count++] = static_cast<uint32_t>(s - sites);
  }
  unsigned lane = fsr_thread % kWarp, n = s->count[lane]++;
  if (n >= s->rows_used) {
    if (n >= s->rows_made && !more_rows(*s)) {
      s->lanes_dropped++;
      return;
    }
    s->rows[n].lanes = 0;
    s->rows_used = n + 1;
  }
  s->rows[n].lanes |= 1u << lane;
  s->rows[n].address[lane] = address;
  s->lanes_kept++;
}

void statistics_block(uintptr_t pc) {
  if (fsr_thread / kWarp != current_warp) {
    statistics_flush();
    current_warp = fsr_thread / kWarp;
  }
  for (unsigned at = hash(pc, kBlockTable);; at = (at + 1) & (kBlockTable - 1)) {
    if (!block_table[at]) {
      if (block_count == kMaxBlocks) return;
      blocks[block_count] = Block{};
      blocks[block_count].pc = pc;
      block_table[at] = ++block_count;
    }
    Block& b = blocks[block_table[at] - 1];
    if (b.pc != pc) continue;
    if (!b.touched) touched_blocks[touched_block_count++] = block_table[at] - 1;
    b.touched = 1;
    b.count[fsr_thread % kWarp]++;
    return;
  }
}

void statistics_mark() {
  for (unsigned i = 0; i < site_count; i++) {
    Site& s = sites[i];
    s.previous_unique = s.marked_unique, s.previous_max = s.marked_max;
    s.marked_unique = s.unique_sectors, s.marked_max = s.max_same;
  }
}

constexpr double Site::*kScaled[kScaledCounts] = {&Site::requests, &Site::lanes,         &Site::sectors, &Site::wavefronts,
                                     &Site::serial,   &Site::block_sectors, &Site::lines};

void statistics_single() {
  for (unsigned i = 0; i < site_count; i++)
    for (unsigned n = 0; n < kScaledCounts; n++) sites[i].single[n] = sites[i].*kScaled[n];
  for (unsigned i = 0; i < block_count; i++) blocks[i].single = blocks[i].warps;
}

void statistics_scale(double factor) {
  for (unsigned i = 0; i < site_count; i++)
    for (unsigned n = 0; n < kScaledCounts; n++) {
      double& value = sites[i].*kScaled[n];
      value = sites[i].single[n] + (value - sites[i].single[n]) * factor;
    }
  for (unsigned i = 0; i < block_count; i++)
    blocks[i].warps = blocks[i].single + (blocks[i].warps - blocks[i].single) * factor;
}

// Distinct sectors and the busiest address grow with the blocks only as far as blocks touch new ones: go on at the
// rate seen since the mark that about half of the blocks came after.
void statistics_extrapolate(double executed, double marked, double previous, double total) {
  bool late = executed < 1.5 * marked && previous > 0;
  double since = late ? previous : marked;
  if (executed <= since || executed >= total) return;
  for (unsigned i = 0; i < site_count; i++) {
    Site& s = sites[i];
    double left = (total - executed) / (executed - since);
    s.unique_sectors += (s.unique_sectors - (late ? s.previous_unique : s.marked_unique)) * left;
    s.max_same += (s.max_same - (late ? s.previous_max : s.marked_max)) * left;
    double all = static_cast<double>(region_bytes(s) / kSector + 1);
    if (s.unique_sectors > all) s.unique_sectors = all;
  }
}

}  // namespace fsr

using namespace fsr;

extern "C" {

__attribute__((visibility("default"))) unsigned fsr_record_sites(const Site** rows, size_t* stride) {
  *rows = sites;
  *stride = sizeof(Site);
  return site_count;
}

__attribute__((visibility("default"))) unsigned fsr_record_blocks(const Block** rows, size_t* stride) {
  *rows = blocks;
  *stride = sizeof(Block);
  return block_count;
}
}
