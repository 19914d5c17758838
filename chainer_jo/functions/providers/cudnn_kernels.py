"""The small elementwise kernels around cuDNN's graphs.

T is the type of the activations; arithmetic is float32.
"""

from __future__ import annotations

from functools import cache
from typing import Any

#: name -> (inputs, outputs, body), as `cupy.ElementwiseKernel` takes them.
SOURCES = {
    "add": ("T a, T b", "T y", "y = T(float(a) + float(b))"),
    # Written so that NaN stays NaN.
    "relu": ("T x", "T y", "y = float(x) <= 0.0f ? T(0.0f) : x"),
    "relu_grad": ("T gy, T y", "T gx", "gx = float(y) > 0.0f ? gy : T(0.0f)"),
    "fixed_batch_norm_relu": (
        "T x, float32 gamma, float32 beta, float32 mean, float32 var, float32 eps",
        "T y",
        """
        const float z = gamma * (float(x) - mean) / sqrtf(var + eps) + beta;
        y = z <= 0.0f ? T(0.0f) : T(z)
        """,
    ),
    "variance": (
        "float32 inverse, float32 eps",
        "float32 var",
        """
        const float v = 1.0f / (inverse * inverse) - eps;
        var = v < 0.0f ? 0.0f : v
        """,
    ),
    "move_averages": (
        "float32 mean, float32 var, float32 decay, float32 unbias",
        "float32 running_mean, float32 running_var",
        """
        running_mean = decay * running_mean + (1.0f - decay) * mean;
        running_var = decay * running_var + (1.0f - decay) * unbias * var
        """,
    ),
}


class Kernels:
    """Each name in `SOURCES` as a function of CuPy arrays, compiled when it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name not in SOURCES:
            raise AttributeError(name)
        return _compile(name)


@cache
def _compile(name: str) -> Any:
    import cupy

    inputs, outputs, body = SOURCES[name]
    return cupy.ElementwiseKernel(inputs, outputs, body, f"jo_{name}")
