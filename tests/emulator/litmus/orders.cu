// Blocks start and end in any order, threads too. What blocks share the device makes progress together; nothing else
// may be waited for.
#define V(p) (*(volatile int*)(p))

// litmus: order_ticket_as_offset 8x32 wrong out=0,0,1,3,6 | a scan whose offsets come in the order of arrival
__global__ void order_ticket_as_offset(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(flag, blockIdx.x);
}
// litmus: order_append 1x64 wrong out=0,1,2,3 | positions from a counter follow the order of the threads
__global__ void order_append(int* data, int* flag, int* out) { out[atomicAdd(flag, 1)] = threadIdx.x; }
// litmus: order_any_position 4x32 fine out=8128 | a sum does not mind in which order it was gathered
__global__ void order_any_position(int* data, int* flag, int* out) {
  data[atomicAdd(flag, 1)] = blockIdx.x * 32 + threadIdx.x;
  atomicAdd(out, blockIdx.x * 32 + threadIdx.x);
}
// litmus: order_last_writer 4x32 wrong out=3 | whichever block stores last
__global__ void order_last_writer(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) out[0] = blockIdx.x;
}
// litmus: order_last_exchange 4x32 wrong out=3 | the same with atomics: no race, and no order
__global__ void order_last_exchange(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) atomicExch(out, blockIdx.x);
}
// litmus: order_maximum 4x32 fine out=3 | the maximum does not depend on it
__global__ void order_maximum(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) atomicMax(out, blockIdx.x);
}
// litmus: order_previous_block 8x32 wrong out=0,1,3,6 | takes the previous block's result without waiting for it
__global__ void order_previous_block(int* data, int* flag, int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = blockIdx.x + (blockIdx.x ? out[blockIdx.x - 1] : 0);
}
// litmus: order_store_buffer 2x32 wrong out=1 | each may load before its own store is seen: both find 0
__global__ void order_store_buffer(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  V(data + blockIdx.x) = 1;
  if (V(data + 1 - blockIdx.x)) out[0] = 1;
}
// litmus: order_store_buffer_fences 2x32 fine out=1 | __threadfence() is sequentially consistent: one sees the other
__global__ void order_store_buffer_fences(int* data, int* flag, int* out) {
  if (threadIdx.x) return;
  V(data + blockIdx.x) = 1;
  __threadfence();
  if (V(data + 1 - blockIdx.x)) atomicExch(out, 1);
}
// litmus: order_lanes_shuffle 1x32 wrong out=1,0,3,2 | shuffles order no memory
__global__ void order_lanes_shuffle(int* data, int* flag, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  int other = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
  out[threadIdx.x] = s[other];
}
// litmus: order_lanes_vote 1x32 wrong out=1,0,3,2 | nor do votes
__global__ void order_lanes_vote(int* data, int* flag, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  if (__any_sync(0xffffffffu, 1)) out[threadIdx.x] = s[threadIdx.x ^ 1];
}
// litmus: order_lanes_syncwarp 1x32 fine out=1,0,3,2 | __syncwarp() orders memory among its lanes
__global__ void order_lanes_syncwarp(int* data, int* flag, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
// litmus: order_warps_syncwarp 1x64 wrong out=32,33 | and not among warps
__global__ void order_warps_syncwarp(int* data, int* flag, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}
// litmus: order_warps_syncthreads 1x64 fine out=32,33 | a block barrier does
__global__ void order_warps_syncthreads(int* data, int* flag, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}
