"""The class of pointers that step over what other threads have in between, as a candidate's text holds it."""

from __future__ import annotations

STRIDED = "fsr_strided"
STRIDED_CLASS = """\
// A pointer to elements that lie ``stride`` apart, used like any other.
template <typename T, typename Stride = int>
struct fsr_strided {
    T *at;
    Stride stride;
    fsr_strided() = default;
    __device__ __forceinline__ fsr_strided(T *at, Stride stride) : at(at), stride(stride) {}
    template <typename I> __device__ __forceinline__ T &operator[](I n) const { return at[n * stride]; }
    __device__ __forceinline__ T &operator*() const { return *at; }
    __device__ __forceinline__ T *operator->() const { return at; }
    template <typename I> __device__ __forceinline__ fsr_strided operator+(I n) const
    {
        return {at + n * stride, stride};
    }
    template <typename I> __device__ __forceinline__ fsr_strided operator-(I n) const
    {
        return {at - n * stride, stride};
    }
    template <typename I> __device__ __forceinline__ fsr_strided &operator+=(I n) { at += n * stride; return *this; }
    template <typename I> __device__ __forceinline__ fsr_strided &operator-=(I n) { at -= n * stride; return *this; }
    __device__ __forceinline__ fsr_strided &operator++() { at += stride; return *this; }
    __device__ __forceinline__ fsr_strided &operator--() { at -= stride; return *this; }
    __device__ __forceinline__ fsr_strided operator++(int) { fsr_strided old = *this; at += stride; return old; }
    __device__ __forceinline__ fsr_strided operator--(int) { fsr_strided old = *this; at -= stride; return old; }
    __device__ __forceinline__ long long operator-(fsr_strided other) const { return (at - other.at) / stride; }
    __device__ __forceinline__ bool operator==(fsr_strided other) const { return at == other.at; }
    __device__ __forceinline__ bool operator!=(fsr_strided other) const { return at != other.at; }
    __device__ __forceinline__ bool operator<(fsr_strided other) const { return at < other.at; }
    __device__ __forceinline__ bool operator<=(fsr_strided other) const { return at <= other.at; }
    __device__ __forceinline__ bool operator>(fsr_strided other) const { return at > other.at; }
    __device__ __forceinline__ bool operator>=(fsr_strided other) const { return at >= other.at; }
};
"""
