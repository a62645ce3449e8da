"""Device functions that put sums of neighbouring lanes of a warp together, other than plain ones."""

from __future__ import annotations

RUNNING_SUM = """\
// The sum of a value over the first of LANES neighbouring lanes of a warp, up to each one's own.
template <int LANES, typename T>
__device__ __forceinline__ T fsr_lanes_running_sum(T value)
{
    const unsigned together = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int offset = 1; offset < LANES; offset *= 2) {
        const T below = __shfl_up_sync(together, value, offset, LANES);
        value = lane < offset ? value : below + value;
    }
    return value;
}
"""

COMPENSATED_SUM = """\
// The sum of what LANES neighbouring lanes of a warp hold, each a sum and what it lacks (compensated summation, here by
// Knuth's exact addition); every one of them gets both. ``turn``: when a lane added last: what overflowed is no number
// once something was added to it.
template <int LANES, typename T>
__device__ __forceinline__ void fsr_lanes_compensated_sum(T &sum, T &lacks, long long turn)
{
    const unsigned together = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
    const bool over = !(lacks - lacks == T(0));
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        const T a = sum, b = __shfl_xor_sync(together, sum, offset);
        const T other = __shfl_xor_sync(together, lacks, offset);
        sum = a + b;
        const T added = sum - a;
        lacks = (lacks + other) + ((a - (sum - added)) + (b - added));
    }
    sum = __shfl_sync(together, sum, 0, LANES);  // the same bits for all
    lacks = __shfl_sync(together, lacks, 0, LANES);
    const T whole = sum + lacks;
    if (whole - whole == T(0)) {
        lacks = (sum - whole) + lacks;
        sum = whole;
        return;
    }
    long long last = turn;
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        const long long other = __shfl_xor_sync(together, last, offset);
        last = other > last ? other : last;
    }
    int own = over, later = over && turn < last;
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2) {
        own |= __shfl_xor_sync(together, own, offset);
        later |= __shfl_xor_sync(together, later, offset);
    }
    sum = later || !own ? lacks - lacks : sum;
}
"""

LINEAR_STEP = """\
// scale * x + total; what is nought stays so, whatever the factors of several steps come to.
template <typename T, typename X>
__device__ __forceinline__ T fsr_linear_step(T scale, X x, T total)
{
    return x == X(0) ? total : scale * T(x) + total;
}
"""

RUNNING_LINEAR = """\
// Steps x = scale * x + total of LANES neighbouring lanes of a warp, those of the first of them up to each one's own as
// one step.
template <int LANES, typename T>
__device__ __forceinline__ void fsr_lanes_running_linear(T &scale, T &total)
{
    const unsigned together = (0xffffffffu >> (32 - LANES)) << (threadIdx.x % 32 / LANES * LANES);
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int offset = 1; offset < LANES; offset *= 2) {
        const T scale_below = __shfl_up_sync(together, scale, offset, LANES);
        const T below = __shfl_up_sync(together, total, offset, LANES);
        if (lane >= offset) {
            total = below == T(0) ? total : scale * below + total;
            scale = scale * scale_below;
        }
    }
}
"""
