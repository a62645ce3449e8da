"""The class of pointers that step over what other threads have in between, as a candidate's text holds it.

It counts elements and asks for no address, so that a candidate cannot come to depend on where a buffer lies.
"""

from __future__ import annotations

STRIDED = "fsr_strided"
_METHOD = "__device__ __forceinline__"
_ARITHMETIC = """\
    template <typename I> {method} T &operator[](I n) const { return slice[(place + n) * stride]; }
    {method} T &operator*() const { return slice[place * stride]; }
    {method} T *operator->() const { return &slice[place * stride]; }
    template <typename I> {method} fsr_strided operator+(I n) const { return {slice, stride, Stride(place + n)}; }
    template <typename I> {method} fsr_strided operator-(I n) const { return {slice, stride, Stride(place - n)}; }
    template <typename I> {method} fsr_strided &operator+=(I n) { return place += n, *this; }
    template <typename I> {method} fsr_strided &operator-=(I n) { return place -= n, *this; }
    {method} fsr_strided &operator++() { return ++place, *this; }
    {method} fsr_strided &operator--() { return --place, *this; }
    {method} fsr_strided operator++(int) { return {slice, stride, place++}; }
    {method} fsr_strided operator--(int) { return {slice, stride, place--}; }
    {method} Stride operator-(fsr_strided other) const { return place - other.place; }
"""
_COMPARISONS = "".join(
    f"    {_METHOD} bool operator{op}(fsr_strided other) const {{ return place {op} other.place; }}\n"
    for op in ("==", "!=", "<", "<=", ">", ">=")
)
STRIDED_CLASS = f"""\
// A pointer to elements that lie ``stride`` apart, used like any other; it is compared with others of its slice.
template <typename T, typename Stride = int>
struct fsr_strided {{
    T *slice;
    Stride stride, place;
    fsr_strided() = default;
    {_METHOD} fsr_strided(T *slice, Stride stride, Stride place = 0)
        : slice(slice), stride(stride), place(place) {{}}
{_ARITHMETIC.replace("{method}", _METHOD)}{_COMPARISONS}}};
"""
