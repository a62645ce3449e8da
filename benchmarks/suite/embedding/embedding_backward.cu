// The gradient of an embedding: every element of every token by an atomic addition.
//
// /// fsr
// entry = "embedding_grad"
// [sizes]
// tokens = {min = 1, max = 65535, timed = 16384}
// dim = {min = 1, max = 4096, timed = 1024}
// vocabulary = {min = 1, max = 65536, timed = 32000}
// [args]
// ids = {role = "in", shape = ["tokens"], low = 0, high = "vocabulary - 1"}
// dy = {role = "in", shape = ["tokens", "dim"]}
// dtable = {role = "inout", shape = ["vocabulary", "dim"], value = 0}
// [launch]
// grid = ["ceil_div(dim, 256)", "tokens"]
// block = 256
// [tolerance]
// sum_length = "tokens"
// ///
__global__ void embedding_grad(const int *ids, const float *dy, float *dtable, int dim) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < dim) atomicAdd(&dtable[(size_t)ids[blockIdx.y] * dim + c], dy[(size_t)blockIdx.y * dim + c]);
}
