// Message passing: one thread stores data and then a flag, another waits for the flag and then loads the data. In the
// terms of the PTX memory model (PTX ISA, chapter 8): the load must see the data when the store synchronises with it,
// which takes a release pattern (a fence, then a strong store of the flag), an acquire pattern (a strong load of the
// flag, then a fence), both at a scope that holds both threads, and flag accesses that are morally strong.
// Volatile accesses are strong: relaxed, at system scope. Plain ones are weak.
#define V(p) (*(volatile int*)(p))
#define ONE(b) (blockIdx.x == b && threadIdx.x == 0)

// litmus: mp_fences 2x32 fine out=42 | release and acquire patterns at device scope
__global__ void mp_fences(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_system_fences 2x32 fine out=42 | system scope holds every thread of the device
__global__ void mp_system_fences(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence_system(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence_system(); out[0] = data[0]; }
}
// litmus: mp_no_fence 2x32 wrong out=42 | nothing orders the two stores, nor the two loads
__global__ void mp_no_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} out[0] = data[0]; }
}
// litmus: mp_no_release_fence 2x32 wrong out=42 | the flag may be seen before the data
__global__ void mp_no_release_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_no_acquire_fence 2x32 wrong out=42 | the data may be loaded before the flag
__global__ void mp_no_acquire_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} out[0] = data[0]; }
}
// litmus: mp_fence_before_store 2x32 wrong out=42 | the fence orders what stands before it, which is nothing
__global__ void mp_fence_before_store(int* data, int* flag, int* out) {
  if (ONE(0)) { __threadfence(); data[0] = 42; V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_fence_after_flag 2x32 wrong out=42 | the flag may be seen before the fence is reached
__global__ void mp_fence_after_flag(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; V(flag) = 1; __threadfence(); }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_block_fence_release 2x32 wrong out=42 | block scope does not hold the other block's thread
__global__ void mp_block_fence_release(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence_block(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_block_fence_acquire 2x32 wrong out=42 | the same on the side of the loads
__global__ void mp_block_fence_acquire(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence_block(); out[0] = data[0]; }
}
// litmus: mp_block_fence_in_block 1x64 fine out=42 | within a block its scope is enough
__global__ void mp_block_fence_in_block(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) { data[0] = 42; __threadfence_block(); V(flag) = 1; }
  if (threadIdx.x == 32) { while (!V(flag)) {} __threadfence_block(); out[0] = data[0]; }
}
// litmus: mp_no_fence_in_block 1x64 wrong out=42 | two warps of one block are not ordered either
__global__ void mp_no_fence_in_block(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) { data[0] = 42; V(flag) = 1; }
  if (threadIdx.x == 32) { while (!V(flag)) {} out[0] = data[0]; }
}
// litmus: mp_plain_flag 2x32 wrong out=42 | weak accesses of the flag race
__global__ void mp_plain_flag(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); *flag = 1; }
  if (ONE(1)) { int seen = *flag; __threadfence(); out[0] = seen ? data[0] : 42; }
}
// litmus: mp_plain_store_of_flag 2x32 wrong out=42 | a weak store and a strong load race all the same
__global__ void mp_plain_store_of_flag(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); *flag = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_volatile_without_fence 2x32 wrong out=42 | no race (all are strong), but relaxed: the old data may be seen
__global__ void mp_volatile_without_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { V(data) = 42; V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} out[0] = V(data); }
}
// litmus: mp_volatile_with_fences 2x32 fine out=42 | relaxed accesses, ordered by the fences
__global__ void mp_volatile_with_fences(int* data, int* flag, int* out) {
  if (ONE(0)) { V(data) = 42; __threadfence(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); out[0] = V(data); }
}
// litmus: mp_atomics 2x32 fine out=42 | CUDA's atomic functions are strong at device scope
__global__ void mp_atomics(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }
  if (ONE(1)) { while (!atomicAdd(flag, 0)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_atomics_without_fence 2x32 wrong out=42 | and relaxed: they order nothing else
__global__ void mp_atomics_without_fence(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; atomicExch(flag, 1); }
  if (ONE(1)) { while (!atomicAdd(flag, 0)) {} out[0] = data[0]; }
}
// litmus: mp_block_atomics 2x32 wrong out=42 | block-scoped atomics of two blocks are not morally strong
__global__ void mp_block_atomics(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); atomicExch_block(flag, 1); }
  if (ONE(1)) { while (!atomicAdd_block(flag, 0)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_one_block_atomic 2x32 wrong out=42 | both scopes must hold both threads
__global__ void mp_one_block_atomic(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); atomicExch(flag, 1); }
  if (ONE(1)) { while (!atomicAdd_block(flag, 0)) {} __threadfence(); out[0] = data[0]; }
}
// litmus: mp_block_atomics_in_block 1x64 fine out=42 | within a block they are
__global__ void mp_block_atomics_in_block(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) { data[0] = 42; __threadfence_block(); atomicExch_block(flag, 1); }
  if (threadIdx.x == 32) { while (!atomicAdd_block(flag, 0)) {} __threadfence_block(); out[0] = data[0]; }
}
// litmus: mp_whole_block 2x64 fine out=2016 | causality passes through block barriers on both sides
__global__ void mp_whole_block(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) { __threadfence(); V(flag) = 1; }
  } else {
    if (threadIdx.x == 0) { while (!V(flag)) {} __threadfence(); }
    __syncthreads();
    atomicAdd(out, data[threadIdx.x]);
  }
}
// litmus: mp_whole_block_no_barrier 2x64 wrong out=2016 | one thread's fence says nothing of the others' stores
__global__ void mp_whole_block_no_barrier(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    if (threadIdx.x == 63) { __threadfence(); V(flag) = 1; }
  } else {
    if (threadIdx.x == 0) { while (!V(flag)) {} __threadfence(); }
    __syncthreads();
    atomicAdd(out, data[threadIdx.x]);
  }
}
// litmus: mp_three_blocks 3x32 fine out=42 | causality is transitive: the second block passes on what it has seen
__global__ void mp_three_blocks(int* data, int* flag, int* out) {
  if (ONE(0)) { data[0] = 42; __threadfence(); V(flag) = 1; }
  if (ONE(1)) { while (!V(flag)) {} __threadfence(); V(flag + 1) = 1; }
  if (ONE(2)) { while (!V(flag + 1)) {} __threadfence(); out[0] = data[0]; }
}
