// A PyTorch extension as people write it: dispatch on types, bindings, several kernels.
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_INPUT(x) CHECK_CUDA(x)

namespace {

constexpr int kThreads = 256;

template <typename scalar_t>
__device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return 1.0 / (1.0 + exp(-z));
}

template <typename scalar_t>
__device__ __forceinline__ scalar_t d_sigmoid(scalar_t z) {
  const auto s = sigmoid(z);
  return (1.0 - s) * s;
}

template <typename scalar_t>
__global__ void swish_forward(const scalar_t* __restrict__ input, scalar_t* __restrict__ output, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    output[i] = input[i] * sigmoid(input[i]);
  }
}

template <typename scalar_t>
__global__ void swish_backward(const scalar_t* grad, const scalar_t* input, scalar_t* out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = grad[i] * (sigmoid(input[i]) + input[i] * d_sigmoid(input[i]));
}

}  // namespace

torch::Tensor swish(torch::Tensor input) {
  CHECK_INPUT(input);
  auto output = torch::empty_like(input);
  const int64_t n = input.numel();
  const int blocks = (n + kThreads - 1) / kThreads;
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "swish", ([&] {
    swish_forward<scalar_t><<<blocks, kThreads, 0, at::cuda::getCurrentCUDAStream()>>>(
        input.data_ptr<scalar_t>(), output.data_ptr<scalar_t>(), n);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return output;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("swish", &swish, "Swish (CUDA)");
}
