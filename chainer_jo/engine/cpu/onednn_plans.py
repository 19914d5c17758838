"""Plans of operations by oneDNN, made once per shape.

A plan holds the primitives of an operation with everything fixed except the addresses of arrays,
and is called with these. Activations are channels-last; weights and their gradients are reordered
between Chainer's (o, c, kh, kw) and the layout that a primitive prefers, in a buffer of the plan.
"""

from __future__ import annotations

from ctypes import c_float, c_int, c_uint, c_void_p

import numpy

from chainer_jo.engine.cpu import dnnl
from chainer_jo.engine.cpu.buffers import Buffers
from chainer_jo.engine.cpu.dnnl import Library, Primitive
from chainer_jo.engine.interface import EPS, Shape

#: Maximum width of small images, in pixels; see `direct_is_faster`.
SMALL_WIDTH = 8
#: Widths in pixels for the gradient of weights by AMX, which multiplies 32 pixels of a row at a
#: time: rows shorter than SHORT_ROW are joined to rows up to LONG_ROW, which stay in the cache.
SHORT_ROW, LONG_ROW = 16, 160
#: Channels of the widest block of one-pixel kernels; see `_describe_grad_weight`.
BLOCK = 16

_NORMALIZE = dnnl.USE_SCALE | dnnl.USE_SHIFT | dnnl.FUSE_RELU


class Planner:
    """Settings of all plans of a backend: the activations' `data_type` (dnnl.F32 or BF16), and True
    in `avx512` and `amx` if the processor has these instructions."""

    def __init__(self, library: Library, buffers: Buffers, data_type: int) -> None:
        self.library = library
        self.buffers = buffers
        self.data_type = data_type
        self.avx512 = bool(library.instructions() & dnnl.AVX512_INSTRUCTIONS)
        self.amx = bool(library.instructions() & dnnl.AMX_INSTRUCTIONS)

    def activation(self, shape: Shape, data_type: int | None = None) -> c_void_p:
        """Descriptor of channels-last memory of the logical shape (n, c, h, w)."""
        n, c, h, w = shape
        return self.library.strided(shape, (c * h * w, 1, w * c, c), data_type or self.data_type)

    def plain_weights(self, shape: Shape) -> c_void_p:
        """Descriptor of float32 weights as Chainer has them."""
        _, c, kh, kw = shape
        return self.library.strided(shape, (c * kh * kw, kh * kw, kw, 1), dnnl.F32)

    def scratch(self, descriptor: c_void_p) -> numpy.ndarray:
        """Memory of a descriptor's size."""
        return self.buffers.empty((self.library.size(descriptor),), numpy.dtype(numpy.uint8))


class Conv2D:
    """Convolution: `plan(x, W, y)`, or `plan(x, W, y, residual)` if it `adds`; `y_shape` is y's
    shape."""

    def __init__(
        self, planner: Planner, x_shape: Shape, W_shape: Shape, stride: int, pad: int, adds: bool
    ) -> None:
        library = planner.library
        self.y_shape, *geometry = _geometry(x_shape, W_shape, stride, pad)
        x, y = planner.activation(x_shape), planner.activation(self.y_shape)
        attributes = library.adding(y) if adds else None
        desc = _describe_forward(planner, x, y, self.y_shape, W_shape, stride, geometry, attributes)
        W = library.descriptor_of(desc, dnnl.QUERY_WEIGHTS)
        self._scratch = planner.scratch(W)
        fixed = self._scratch.ctypes.data
        residual = [(dnnl.FIRST_POST_OP_SRC_1, y)] if adds else []
        self._reorder = _reorder(library, (planner.plain_weights(W_shape),), (W, fixed))
        self._convolve = Primitive(
            library, desc, (dnnl.WEIGHTS, W, fixed), (dnnl.SRC, x), (dnnl.DST, y), *residual
        )

    def __call__(self, x: int, W: int, *y_and_residual: int) -> None:
        self._reorder(W)
        self._convolve(x, *y_and_residual)


class Conv2DGradInput:
    """Gradient with respect to x: `plan(gy, W, gx)`."""

    def __init__(
        self, planner: Planner, x_shape: Shape, W_shape: Shape, stride: int, pad: int
    ) -> None:
        library = planner.library
        y_shape, *geometry = _geometry(x_shape, W_shape, stride, pad)
        x, y = planner.activation(x_shape), planner.activation(y_shape)
        desc = _describe(
            library,
            direct_is_faster(planner, True, y_shape, W_shape, stride),
            "convolution_backward_data",
            c_int(dnnl.CONVOLUTION_DIRECT),
            x,
            library.any_layout(W_shape, planner.data_type),
            y,
            *geometry,
            _describe_forward(planner, x, y, y_shape, W_shape, stride, geometry),
            None,
        )
        W = library.descriptor_of(desc, dnnl.QUERY_WEIGHTS)
        self._scratch = planner.scratch(W)
        fixed = self._scratch.ctypes.data
        self._reorder = _reorder(library, (planner.plain_weights(W_shape),), (W, fixed))
        self._convolve = Primitive(
            library, desc, (dnnl.WEIGHTS, W, fixed), (dnnl.DIFF_DST, y), (dnnl.DIFF_SRC, x)
        )

    def __call__(self, gy: int, W: int, gx: int) -> None:
        self._reorder(W)
        self._convolve(gy, gx)


class Conv2DGradWeight:
    """Gradient with respect to W: `plan(x, gy, gW)`.

    If AMX would multiply short rows of pixels, groups of images are first copied side by side, with
    zeros in between.
    """

    def __init__(
        self, planner: Planner, x_shape: Shape, W_shape: Shape, stride: int, pad: int
    ) -> None:
        library = planner.library
        desc = _describe_grad_weight(planner, x_shape, W_shape, stride, pad)
        shapes = x_shape, _geometry(x_shape, W_shape, stride, pad)[0]
        self._copies: tuple[_Copy, ...] = ()
        fixed: tuple[tuple[int, ...], ...] = ((), ())
        if "amx" in library.implementation(desc):
            rows = side_by_side(*shapes, W_shape, stride, pad)
            if rows is not None:
                self._copies = tuple(
                    _Copy(planner, *both) for both in zip(shapes, rows, strict=True)
                )
                fixed = tuple((copy.address,) for copy in self._copies)
                shapes = rows
                desc = _describe_grad_weight(planner, rows[0], W_shape, stride, pad)
        gW = library.descriptor_of(desc, dnnl.QUERY_DIFF_WEIGHTS)
        self._scratch = planner.scratch(gW)
        address = self._scratch.ctypes.data
        self._convolve = Primitive(
            library,
            desc,
            (dnnl.DIFF_WEIGHTS, gW, address),
            (dnnl.SRC, planner.activation(shapes[0]), *fixed[0]),
            (dnnl.DIFF_DST, planner.activation(shapes[1]), *fixed[1]),
        )
        self._reorder = _reorder(library, (gW, address), (planner.plain_weights(W_shape),))

    def __call__(self, x: int, gy: int, gW: int) -> None:
        if self._copies:
            for copy, source in zip(self._copies, (x, gy), strict=True):
                copy(source)
            self._convolve()
        else:
            self._convolve(x, gy)
        self._reorder(gW)


class _Copy:
    """`copy(x)` puts groups of images side by side, at `address`, with zeros in between."""

    def __init__(self, planner: Planner, shape: Shape, rows_shape: Shape) -> None:
        n, c, h, w = shape
        groups, _, _, row = rows_shape
        spacing = row // (n // groups)
        wide = planner.activation(rows_shape)
        self._images = planner.scratch(wide)
        self._images[...] = 0
        self.address = self._images.ctypes.data
        both = (
            ((c * h * w * (n // groups), c * h * w, w * c), ()),
            ((c * h * row, c * spacing, row * c), (self.address,)),
        )
        pixels = (groups, n // groups, h, w * c)
        source, target = (
            (planner.library.strided(pixels, (*strides, 1), planner.data_type), *address)
            for strides, address in both
        )
        self._reorder = _reorder(planner.library, source, target)

    def __call__(self, x: int) -> None:
        self._reorder(x)


def side_by_side(
    x_shape: Shape, y_shape: Shape, W_shape: Shape, stride: int, pad: int
) -> tuple[Shape, Shape] | None:
    """Shapes of x and y with groups of images as one wide image; None if rows are long enough, or
    if a one-pixel kernel is not worth the copies.

    The convolution of wide x is wide y if the pixels between images of x, and of y, are 0.
    """
    (n, c, h, w), (_, o, *size) = x_shape, y_shape
    if size[1] >= SHORT_ROW or W_shape[2:] == (1, 1):
        return None
    reach = (size[1] - 1) * stride + W_shape[3] - pad - w
    between = max(0, -(-(w + max(pad, reach)) // stride) - size[1])
    group = max(g for g in range(1, n + 1) if not n % g and g * (size[1] + between) <= LONG_ROW)
    rows = (n // group, c, h, group * (size[1] + between) * stride)
    y_rows = _geometry(rows, W_shape, stride, pad)[0]
    expected = (n // group, o, size[0], group * (size[1] + between))
    return (rows, y_rows) if group > 1 and y_rows == expected else None


class BatchNormReLU:
    """Batch normalisation and ReLU in training mode.

    `forward(x, y, gamma, beta, mean, var, mask)` writes y and the last three;
    `backward(x, gy, gamma, mean, var, mask, gx, ggamma, gbeta)` writes the last three. The mask, of
    `mask_size` bytes, marks where ReLU was active.
    """

    def __init__(self, planner: Planner, shape: Shape) -> None:
        library, x = planner.library, planner.activation(shape)
        options = c_float(EPS), c_uint(_NORMALIZE)
        forward = library.describe(
            "batch_normalization_forward", c_int(dnnl.FORWARD_TRAINING), x, x, *options, None
        )
        backward = library.describe(
            "batch_normalization_backward", c_int(dnnl.BACKWARD), x, x, x, *options, forward, None
        )
        mask = library.descriptor_of(forward, dnnl.QUERY_WORKSPACE)
        self.mask_size = library.size(mask)
        scale, shift = _vectors(planner, shape, dnnl.SCALE, dnnl.SHIFT)
        saved = *_vectors(planner, shape, dnnl.MEAN, dnnl.VARIANCE), (dnnl.WORKSPACE, mask)
        gradients = _vectors(planner, shape, dnnl.DIFF_SCALE, dnnl.DIFF_SHIFT)
        arrays = (dnnl.SRC, x), (dnnl.DST, x)
        self.forward = Primitive(library, forward, *arrays, scale, shift, *saved)
        arrays, gx = ((dnnl.SRC, x), (dnnl.DIFF_DST, x)), (dnnl.DIFF_SRC, x)
        self.backward = Primitive(library, backward, *arrays, scale, *saved, gx, *gradients)


def fixed_batch_norm_relu(planner: Planner, shape: Shape) -> Primitive:
    """Batch normalisation and ReLU in test mode: `plan(x, y, gamma, beta, mean, var)`."""
    library, x = planner.library, planner.activation(shape)
    options = c_float(EPS), c_uint(_NORMALIZE | dnnl.USE_GLOBAL_STATISTICS)
    desc = library.describe(
        "batch_normalization_forward", c_int(dnnl.FORWARD_INFERENCE), x, x, *options, None
    )
    vectors = _vectors(planner, shape, dnnl.SCALE, dnnl.SHIFT, dnnl.MEAN, dnnl.VARIANCE)
    return Primitive(library, desc, (dnnl.SRC, x), (dnnl.DST, x), *vectors)


def _vectors(planner: Planner, shape: Shape, *indices: int) -> list[tuple[int, c_void_p]]:
    """Arguments of one float32 number per channel."""
    vector = planner.library.strided(shape[1:2], (1,), dnnl.F32)
    return [(index, vector) for index in indices]


def conversion(planner: Planner, shape: Shape, to_float32: bool) -> Primitive:
    """`plan(x, y)`: y is float32 x in the type of activations, or the other way round."""
    ours, theirs = planner.activation(shape), planner.activation(shape, dnnl.F32)
    source, target = (ours, theirs) if to_float32 else (theirs, ours)
    return _reorder(planner.library, (source,), (target,))


def addition(planner: Planner, shape: Shape) -> Primitive:
    """`plan(a, b, sum)`; the sum may be a or b itself."""
    x = planner.activation(shape)
    desc = planner.library.describe("binary", c_int(dnnl.BINARY_ADD), x, x, x, None)
    return Primitive(planner.library, desc, (dnnl.SRC, x), (dnnl.SRC_1, x), (dnnl.DST, x))


def _geometry(x_shape: Shape, W_shape: Shape, stride: int, pad: int) -> list:
    """Shape of y; strides, dilations, left and right padding in oneDNN's terms."""
    n, c, *size = x_shape
    o, c_of_W, *kernel = W_shape
    output = [(length + 2 * pad - k) // stride + 1 for length, k in zip(size, kernel, strict=True)]
    if c != c_of_W or min(output) < 1:
        raise ValueError(f"convolution of x {x_shape} with W {W_shape}, stride {stride}, pad {pad}")
    end = [
        (y - 1) * stride + k - length - pad
        for y, k, length in zip(output, kernel, size, strict=True)
    ]
    parameters = ((stride, stride), (0, 0), (pad, pad), end)
    return [(n, o, *output), *map(dnnl.dims, parameters)]


def direct_is_faster(
    planner: Planner, gradient: bool, y_shape: Shape, W_shape: Shape, stride: int
) -> bool:
    """True if oneDNN's direct kernel beats its first choice, a sum of small matrix products, for a
    convolution or its `gradient` with respect to the input.

    Measured on a Xeon with AMX and on EPYCs with AVX-512 and with AVX2 alone. The choice depends
    only on the shape and the instructions, so that a resumed run adds up in the same order.
    """
    width, pairs, float32 = y_shape[3], W_shape[0] * W_shape[1], planner.data_type == dnnl.F32
    small = width <= SMALL_WIDTH
    one_pixel = W_shape[2:] == (1, 1)
    # The direct sums over an odd number of bfloat16 channels are wrong for multiples of 30 pixels.
    if one_pixel and not float32 and W_shape[0 if gradient else 1] % 2:
        return False
    if not planner.avx512:
        return one_pixel or gradient and pairs < 32 * 32
    if not planner.amx:
        return gradient and stride > 1 or small and pairs <= 64 * 64
    if stride == 1:
        if one_pixel:
            return False
        if float32:
            return small and pairs <= (48 * 48 if gradient else 32 * 32)
        return not small and pairs <= 32 * 32
    if one_pixel:
        return gradient or float32 and small
    if float32 or gradient:
        return pairs <= 32 * 64 and (small or float32)
    return width > SMALL_WIDTH // 2


def _describe(library: Library, direct: bool, *arguments) -> c_void_p:
    """Convolution by oneDNN's first choice ("brg"), or if `direct` by a direct kernel ("jit") with
    the same instructions, if there is one."""
    first = library.describe(*arguments)
    if direct:
        other = library.describe(*arguments)
        instructions = library.implementation(first).rpartition(":")[2]
        # A choice comes twice where a primitive of it has been made before.
        while library.move_on(other):
            kernel, _, others = library.implementation(other).rpartition(":")
            if others != instructions:
                break
            if kernel.startswith("jit"):
                return other
    return first


def _describe_forward(
    planner: Planner,
    x: c_void_p,
    y: c_void_p,
    y_shape: Shape,
    W_shape: Shape,
    stride: int,
    geometry: list,
    attributes: c_void_p | None = None,
) -> c_void_p:
    weights = planner.library.any_layout(W_shape, planner.data_type)
    return _describe(
        planner.library,
        direct_is_faster(planner, False, y_shape, W_shape, stride),
        "convolution_forward",
        c_int(dnnl.FORWARD_TRAINING),
        c_int(dnnl.CONVOLUTION_DIRECT),
        x,
        weights,
        None,
        y,
        *geometry,
        attributes,
    )


def _describe_grad_weight(
    planner: Planner, x_shape: Shape, W_shape: Shape, stride: int, pad: int
) -> c_void_p:
    library = planner.library
    y_shape, *geometry = _geometry(x_shape, W_shape, stride, pad)
    x, y = planner.activation(x_shape), planner.activation(y_shape)
    forward = _describe_forward(planner, x, y, y_shape, W_shape, stride, geometry)
    desc = library.describe(
        "convolution_backward_weights",
        c_int(dnnl.CONVOLUTION_DIRECT),
        x,
        library.any_layout(W_shape, dnnl.F32),
        None,
        y,
        *geometry,
        forward,
        None,
    )
    # With a stride and less than a block of channels, kernels of one pixel write beyond their
    # memory (oneDNN issue 6035, open in 3.12): others take their place.
    while stride > 1 and x_shape[1] < BLOCK and "1x1" in library.implementation(desc):
        if not library.move_on(desc):
            break
    return desc


def _reorder(library: Library, source: tuple, target: tuple) -> Primitive:
    """Copy between layouts, each a descriptor and, if fixed, an address."""
    desc = library.describe_reorder(source[0], target[0])
    return Primitive(library, desc, (dnnl.SRC, *source), (dnnl.DST, *target))
