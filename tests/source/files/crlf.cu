// café in Latin-1, and Ã© in UTF-8
#include <cstdio>

#define TWO \
	2
__global__ void twice_it(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x; // é
	if (i < n)
		x[i] *= TWO;
}

int main() { twice_it<<<1, 32>>>(nullptr, 0); return 0; }