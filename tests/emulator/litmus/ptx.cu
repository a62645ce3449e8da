// The same patterns in inline PTX: what an instruction says of its order and scope is what the memory model is told.
#define ONE(b) (blockIdx.x == b && threadIdx.x == 0)

__device__ inline int acquired(const int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline int relaxed(const int* p) {
  int v;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ inline void released(int* p, int v) {
  asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline void volatile_store(int* p, int v) {
  asm volatile("st.volatile.global.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// litmus: ptx_release_acquire 2x32 fine out=42 | the acquire reads from the release, both at device scope
__global__ void ptx_release_acquire(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; released(flag, 1); }
  if (ONE(1)) { while (!acquired(flag)) {} out[0] = data[0]; }
}
// litmus: ptx_relaxed_load 2x32 wrong out=42 | a relaxed load acquires nothing
__global__ void ptx_relaxed_load(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; released(flag, 1); }
  if (ONE(1)) { while (!relaxed(flag)) {} out[0] = data[0]; }
}
// litmus: ptx_volatile_store 2x32 wrong out=42 | a volatile store releases nothing
__global__ void ptx_volatile_store(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; volatile_store(flag, 1); }
  if (ONE(1)) { while (!acquired(flag)) {} out[0] = data[0]; }
}
// litmus: ptx_weak_flag 2x32 wrong out=42 | a weak store of the flag races with the loads that wait for it
__global__ void ptx_weak_flag(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; asm volatile("st.global.b32 [%0], %1;" ::"l"(flag), "r"(1) : "memory"); }
  if (ONE(1)) { while (!acquired(flag)) {} out[0] = data[0]; }
}
// litmus: ptx_block_release 2x32 wrong out=42 | block scope does not hold the other block's thread
__global__ void ptx_block_release(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; asm volatile("st.release.cta.global.b32 [%0], %1;" ::"l"(flag), "r"(1) : "memory"); }
  if (ONE(1)) { while (!acquired(flag)) {} out[0] = data[0]; }
}
// litmus: ptx_fences 2x32 fine out=42 | membar.gl and fence.acq_rel.gpu are fences at device scope
__global__ void ptx_fences(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; asm volatile("membar.gl;" ::: "memory"); volatile_store(flag, 1); }
  if (ONE(1)) { while (!relaxed(flag)) {} asm volatile("fence.acq_rel.gpu;" ::: "memory"); out[0] = data[0]; }
}
// litmus: ptx_block_fence 2x32 wrong out=42 | membar.cta is one at block scope
__global__ void ptx_block_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; asm volatile("membar.cta;" ::: "memory"); volatile_store(flag, 1); }
  if (ONE(1)) { while (!relaxed(flag)) {} asm volatile("fence.sc.gpu;" ::: "memory"); out[0] = data[0]; }
}
// litmus: ptx_red_release 3x32 fine out=42 | two releasing reductions, and an acquire that sees both
__global__ void ptx_red_release(int* data, int* flag, int* out) {
  if (ONE(0) || ONE(1)) {
    data[blockIdx.x] = 21;
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
  }
  if (ONE(2)) { while (acquired(flag) != 2) {} out[0] = data[0] + data[1]; }
}
// litmus: ptx_red_relaxed 3x32 wrong out=42 | the same with reductions that are relaxed, as they are by default
__global__ void ptx_red_relaxed(int* data, int* flag, int* out) {
  if (ONE(0) || ONE(1)) {
    data[blockIdx.x] = 21;
    asm volatile("red.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
  }
  if (ONE(2)) { while (acquired(flag) != 2) {} out[0] = data[0] + data[1]; }
}
// litmus: ptx_look_back 4x32 fine out=6 | each block waits for the sum of those before it, and hands its own on
__global__ void ptx_look_back(int* data, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  int before = 0;
  if (blockIdx.x) {
    while (!acquired(flag + blockIdx.x - 1)) {}
    before = data[blockIdx.x - 1];
  }
  data[blockIdx.x] = before + blockIdx.x;
  released(flag + blockIdx.x, 1);
  if (blockIdx.x == 3) out[0] = data[3];
}
// litmus: ptx_look_back_relaxed 4x32 wrong out=6 | the same where the sum may be seen later than its flag
__global__ void ptx_look_back_relaxed(int* data, int* flag, int* out) {
  if (threadIdx.x != 0) return;
  int before = 0;
  if (blockIdx.x) {
    while (!relaxed(flag + blockIdx.x - 1)) {}
    before = data[blockIdx.x - 1];
  }
  data[blockIdx.x] = before + blockIdx.x;
  volatile_store(flag + blockIdx.x, 1);
  if (blockIdx.x == 3) out[0] = data[3];
}
// litmus: ptx_shared_no_barrier 1x64 wrong out=7 | shared memory by its own addresses races as by pointers
__global__ void ptx_shared_no_barrier(int* data, int* flag, int* out) {
  __shared__ int word;
  unsigned at = (unsigned)__cvta_generic_to_shared(&word);
  if (threadIdx.x == 0) asm volatile("st.shared.b32 [%0], 7;" ::"r"(at) : "memory");
  if (threadIdx.x == 32) { int v; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory"); out[0] = v; }
}
// litmus: ptx_shared_barrier 1x64 fine out=7 | bar.sync 0 orders the threads of a block
__global__ void ptx_shared_barrier(int* data, int* flag, int* out) {
  __shared__ int word;
  unsigned at = (unsigned)__cvta_generic_to_shared(&word);
  if (threadIdx.x == 0) asm volatile("st.shared.b32 [%0], 7;" ::"r"(at) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  if (threadIdx.x == 32) { int v; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory"); out[0] = v; }
}
// litmus: ptx_named_pair 1x128 fine out=7,9 | pairs of warps meet at barriers of their own, again and again
__global__ void ptx_named_pair(int* data, int* flag, int* out) {
  __shared__ int words[2];
  int pair = threadIdx.x / 64;
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x % 64 == 0) words[pair] = 7 + 2 * pair + round;
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
    if (threadIdx.x % 64 == 33 && round == 0) out[pair] = words[pair];
    asm volatile("bar.sync %0, %1;" ::"r"(pair + 1), "n"(64) : "memory");
  }
}
// litmus: ptx_named_left_out 1x128 wrong out=7,9 | the same without the barrier between reading and writing again
__global__ void ptx_named_left_out(int* data, int* flag, int* out) {
  __shared__ int words[2];
  int pair = threadIdx.x / 64;
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x % 64 == 0) words[pair] = 7 + 2 * pair + round;
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
    if (threadIdx.x % 64 == 33 && round == 0) out[pair] = words[pair];
  }
}
// litmus: ptx_named_others 1x128 wrong out=7 | a barrier orders nothing for warps that are not part of it
__global__ void ptx_named_others(int* data, int* flag, int* out) {
  __shared__ int word;
  if (threadIdx.x == 0) word = 7;
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (threadIdx.x == 96) out[0] = word;
}
// litmus: ptx_producer 1x64 fine out=10 | one warp fills and arrives, the other waits, and gives the place back
__global__ void ptx_producer(int* data, int* flag, int* out) {
  __shared__ int place;
  int sum = 0;
  for (int round = 0; round < 4; round++) {
    if (threadIdx.x < 32) {
      if (round) asm volatile("bar.sync 2, 64;" ::: "memory");
      if (threadIdx.x == 0) place = round + 1;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += place;
      if (round < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  if (threadIdx.x == 40) out[0] = sum;
}
// litmus: ptx_producer_early 1x64 wrong out=10 | the place is filled again before it was given back
__global__ void ptx_producer_early(int* data, int* flag, int* out) {
  __shared__ int place;
  int sum = 0;
  for (int round = 0; round < 4; round++) {
    if (threadIdx.x < 32) {
      if (threadIdx.x == 0) place = round + 1;
      asm volatile("bar.sync 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += place;
    }
  }
  if (threadIdx.x == 40) out[0] = sum;
}
