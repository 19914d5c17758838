"""Float16 in CUDA source, without a header: as an unsigned short, rounded to nearest even."""

FLOAT16 = r"""
#ifdef __CUDACC__
__device__ unsigned short to_half(float value) {
    unsigned short half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}
__device__ float from_half(unsigned short half) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
#else
static unsigned short to_half(float value) {
    const _Float16 rounded = value;
    unsigned short half;
    memcpy(&half, &rounded, 2);
    return half;
}
static float from_half(unsigned short half) {
    _Float16 value;
    memcpy(&value, &half, 2);
    return value;
}
#endif
"""
