// /// fsr
// entry = "sum_over_rows"
// [sizes]
// BT = {min = 1, max = 65536, timed = 8192}
// OC = {min = 1, max = 65536, timed = 3072}
// [args]
// dbias = {role = "inout", shape = ["OC"]}
// dout = {role = "in", shape = ["BT", "OC"]}
// BT = {value = "BT"}
// OC = {value = "OC"}
// [launch]
// grid = "OC"
// block = 256
// shared_bytes = "4 * 256"
// [tolerance]
// sum_length = "BT"
// ///
__global__ void sum_over_rows(float *dbias, const float *dout, int BT, int OC) {
  extern __shared__ float partial[];
  int o = blockIdx.x, tid = threadIdx.x;
  float s = 0;
  for (int i = tid; i < BT; i += blockDim.x) s += dout[i * OC + o];
  partial[tid] = s;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step >>= 1) {
    if (tid < step) partial[tid] += partial[tid + step];
    __syncthreads();
  }
  if (tid == 0) dbias[o] += partial[0];
}
