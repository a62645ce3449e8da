// Blocks that wait for blocks: look-back, barriers by atomics, locks. All blocks fit the device together.
#include <cooperative_groups.h>
#define V(p) (*(volatile int*)(p))

// litmus: wait_look_back 8x32 fine out=0,1,3,6 | each waits for its predecessor's flag, with fences on both sides
__global__ void wait_look_back(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x, before = 0;
  if (b) { while (!V(flag + b - 1)) {} __threadfence(); before = data[b - 1]; }
  out[b] = data[b] = before + b;
  __threadfence();
  V(flag + b) = 1;
}
// litmus: wait_look_back_ticket 8x32 fine out=28 | places drawn in the order of arrival never wait for a later block
__global__ void wait_look_back_ticket(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  int b = atomicAdd(flag + 63, 1), before = 0;
  if (b) { while (!V(flag + b - 1)) {} __threadfence(); before = data[b - 1]; }
  data[b] = before + b;
  if (b == gridDim.x - 1) out[0] = data[b];
  __threadfence();
  V(flag + b) = 1;
}
// litmus: wait_look_back_no_release 8x32 wrong out=0,1,3,6 | the flag may be seen before the prefix
__global__ void wait_look_back_no_release(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x, before = 0;
  if (b) { while (!V(flag + b - 1)) {} __threadfence(); before = data[b - 1]; }
  out[b] = data[b] = before + b;
  V(flag + b) = 1;
}
// litmus: wait_look_back_no_acquire 8x32 wrong out=0,1,3,6 | the prefix may be loaded before the flag
__global__ void wait_look_back_no_acquire(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  int b = blockIdx.x, before = 0;
  if (b) { while (!V(flag + b - 1)) {} before = data[b - 1]; }
  out[b] = data[b] = before + b;
  __threadfence();
  V(flag + b) = 1;
}
// litmus: wait_look_back_packed 8x32 fine out=0,1,3,6 | value and flag in one word, stored and loaded as one
__global__ void wait_look_back_packed(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  volatile unsigned long long* word = (volatile unsigned long long*)data;
  int b = blockIdx.x, before = 0;
  if (b) {
    unsigned long long seen;
    do seen = word[b - 1]; while (!(seen >> 32));
    before = (int)seen;
  }
  out[b] = before + b;
  word[b] = 1ull << 32 | (unsigned)(before + b);
}
#define BEFORE data[blockIdx.x * 64 + threadIdx.x] = blockIdx.x
#define AFTER out[blockIdx.x * 64 + threadIdx.x] = data[(blockIdx.x + 1) % gridDim.x * 64 + threadIdx.x]

// litmus: wait_barrier 4x64 fine out=1,1,1 | barrier of the block, fence, count, wait, fence, barrier of the block
__global__ void wait_barrier(int* data, int* flag, int* out) {
  BEFORE;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(flag, 1);
    while (V(flag) < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  AFTER;
}
// litmus: wait_barrier_twice 4x64 fine out=1,1,1 | twice, by a count that goes on
__global__ void wait_barrier_twice(int* data, int* flag, int* out) {
  for (int round = 1; round <= 2; round++) {
    if (round == 2) BEFORE;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(flag, 1);
      while (atomicAdd(flag, 0) < gridDim.x * round) {}
      __threadfence();
    }
    __syncthreads();
  }
  AFTER;
}
// litmus: wait_barrier_no_release 4x64 wrong out=1,1,1 | the count may be seen before the data
__global__ void wait_barrier_no_release(int* data, int* flag, int* out) {
  BEFORE;
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(flag, 1);
    while (V(flag) < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  AFTER;
}
// litmus: wait_barrier_no_acquire 4x64 wrong out=1,1,1 | the data may be loaded before the count
__global__ void wait_barrier_no_acquire(int* data, int* flag, int* out) {
  BEFORE;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(flag, 1);
    while (V(flag) < gridDim.x) {}
  }
  __syncthreads();
  AFTER;
}
// litmus: wait_barrier_no_first 4x64 wrong out=1,1,1 | the counting thread does not wait for its block
__global__ void wait_barrier_no_first(int* data, int* flag, int* out) {
  BEFORE;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(flag, 1);
    while (V(flag) < gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  AFTER;
}
// litmus: wait_barrier_block_scope 4x64 wrong out=1,1,1 | scopes that do not reach another block
__global__ void wait_barrier_block_scope(int* data, int* flag, int* out) {
  BEFORE;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_block();
    atomicAdd_block(flag, 1);
    while (V(flag) < gridDim.x) {}
    __threadfence_block();
  }
  __syncthreads();
  AFTER;
}
// litmus: wait_grid_sync 4x64 fine out=1,1,1 | the barrier of cooperative groups
__global__ void wait_grid_sync(int* data, int* flag, int* out) {
  BEFORE;
  cooperative_groups::this_grid().sync();
  AFTER;
}
// litmus: wait_lock 4x32 fine out=4 | a lock taken and given back with fences
__global__ void wait_lock(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  while (atomicCAS(flag, 0, 1)) {}
  __threadfence();
  out[0] = out[0] + 1;
  __threadfence();
  atomicExch(flag, 0);
}
// litmus: wait_lock_volatile_unlock 4x32 fine out=4 | a strong store gives it back as well
__global__ void wait_lock_volatile_unlock(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  while (atomicCAS(flag, 0, 1)) {}
  __threadfence();
  out[0] = out[0] + 1;
  __threadfence();
  V(flag) = 0;
}
// litmus: wait_lock_no_fence 4x32 wrong out=4 | what the lock should guard leaks out of it
__global__ void wait_lock_no_fence(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  while (atomicCAS(flag, 0, 1)) {}
  out[0] = out[0] + 1;
  atomicExch(flag, 0);
}
// litmus: wait_lock_plain_unlock 4x32 wrong out=4 | a weak store of the lock races with those who try it
__global__ void wait_lock_plain_unlock(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  while (atomicCAS(flag, 0, 1)) {}
  __threadfence();
  out[0] = out[0] + 1;
  __threadfence();
  *flag = 0;
}
