"""Choice among oneDNN's kernels by shape and instructions, and joined images."""

from types import SimpleNamespace

import numpy as np
import pytest
from engines import backend
from float64_functions import conv2d as conv2d64
from float64_functions import conv2d_gradients

from chainer_jo.engine.cpu import dnnl, onednn_plans


class Choices:
    """A library whose convolutions have these implementations, the first choice first."""

    def __init__(self, *names):
        self.names = names

    def describe(self, kind):
        return [0]

    def implementation(self, desc):
        return self.names[desc[0]]

    def move_on(self, desc):
        desc[0] += 1
        return desc[0] < len(self.names)


@pytest.mark.parametrize("names, chosen", [
    (("brgconv_strided:avx512_core", "jit:avx512_core"), "jit:avx512_core"),
    (("brg_fwd:avx2+brgconv:avx2", "jit_1x1:avx2"), "jit_1x1:avx2"),
    (("brgconv:avx512_core", "brgconv:avx2", "jit:avx2"), "brgconv:avx512_core"),
    (("brgconv:avx512_core", "jit:avx2"), "brgconv:avx512_core"),
    (("brgconv:avx512_core",) * 2 + ("jit:avx512_core",), "jit:avx512_core"),
    (("brgconv:avx512_core_amx", "jit:avx512_core_amx"), "jit:avx512_core_amx"),
    (("brgconv:avx512_core_amx", "jit:avx512_core"), "brgconv:avx512_core_amx"),
    (("jit:avx512_core", "x64:gemm:jit"), "jit:avx512_core"),
    (("ref:any",), "ref:any"),
])  # fmt: skip
def test_the_direct_kernel_is_taken_where_it_is_as_good_as_the_first(names, chosen):
    library = Choices(*names)
    assert library.implementation(onednn_plans._describe(library, True, "kind")) == chosen
    assert library.implementation(onednn_plans._describe(library, False, "kind")) == names[0]


@pytest.mark.parametrize("name", ["fp32", "mixed"])
@pytest.mark.parametrize("channels", [1, 4, 8, 15])
def test_no_kernel_of_one_pixel_for_a_part_of_a_block_with_a_stride(name, channels):
    """For the gradient of weights it writes beyond its memory, which ends in an abort somewhere
    else (with AVX2 alone at the latest)."""
    planner, W_shape = backend(name)._planner, (8, channels, 1, 1)
    plan = onednn_plans.Conv2DGradWeight(planner, (3, channels, 16, 16), W_shape, 2, 0)
    assert "1x1" not in plan._convolve.implementation


AVX512, AVX2, AMX, AMX_BF16 = (
    SimpleNamespace(amx=amx, data_type=data_type, avx512=avx512)
    for amx, data_type, avx512 in (
        (False, dnnl.F32, True), (False, dnnl.F32, False), (True, dnnl.F32, True),
        (True, dnnl.BF16, True),
    )
)  # fmt: skip


@pytest.mark.parametrize(("machine", "gradient", "width", "W_shape", "stride", "direct"), [
    (AVX512, True, 16, (64, 32, 3, 3), 2, True), (AVX512, False, 8, (64, 64, 3, 3), 1, True),
    (AVX512, False, 16, (64, 32, 3, 3), 2, False), (AMX, False, 8, (64, 64, 3, 3), 1, False),
    (AMX, False, 16, (32, 32, 3, 3), 1, False), (AMX, False, 8, (16, 16, 3, 3), 1, True),
    (AMX, False, 4, (48, 48, 3, 3), 1, False), (AMX, True, 4, (48, 48, 3, 3), 1, True),
    (AMX, False, 8, (16, 16, 1, 1), 1, False), (AMX, True, 16, (32, 32, 3, 3), 1, False),
    (AMX, True, 4, (128, 64, 3, 3), 2, False), (AMX, True, 8, (64, 32, 3, 3), 2, True),
    (AMX_BF16, True, 8, (16, 16, 3, 3), 1, False), (AMX_BF16, True, 4, (128, 64, 1, 1), 2, True),
    (AMX_BF16, True, 16, (64, 32, 1, 1), 2, True), (AMX_BF16, False, 8, (64, 32, 1, 1), 2, False),
    (AMX_BF16, False, 8, (64, 32, 3, 3), 2, True), (AMX_BF16, False, 4, (128, 64, 3, 3), 2, False),
    (AMX_BF16, True, 32, (32, 32, 3, 3), 1, True), (AVX2, False, 4, (48, 48, 3, 3), 1, False),
    (AVX2, True, 8, (64, 64, 3, 3), 1, False), (AVX2, True, 16, (64, 32, 3, 3), 2, False),
    (AVX2, True, 4, (48, 16, 3, 3), 2, True), (AVX2, False, 8, (16, 16, 3, 3), 1, False),
    (AVX2, True, 16, (32, 32, 1, 1), 1, True), (AVX2, False, 4, (48, 16, 1, 1), 2, True),
])  # fmt: skip
def test_which_kernel_by_shape_and_instructions(machine, gradient, width, W_shape, stride, direct):
    y_shape = (128, W_shape[0], width, width)
    assert onednn_plans.direct_is_faster(machine, gradient, y_shape, W_shape, stride) == direct


@pytest.mark.parametrize(("x_shape", "o", "k", "stride", "pad"), [
    ((6, 2, 4, 4), 3, 3, 1, 1),
    ((6, 2, 8, 8), 3, 3, 2, 1),
    ((6, 2, 7, 7), 3, 3, 2, 1),
    ((6, 2, 5, 6), 3, 5, 1, 2),
    ((6, 2, 6, 6), 3, 2, 2, 0),
])  # fmt: skip
def test_joined_images_have_the_same_gradient_of_weights(x_shape, o, k, stride, pad):
    """What lies between them is 0 in x and in gy, and wide enough."""
    n, c, h, w = x_shape
    W_shape = (o, c, k, k)
    y_shape = conv2d64(np.zeros(x_shape), np.zeros(W_shape), stride, pad).shape
    rng = np.random.default_rng(0)
    x, gy = rng.standard_normal(x_shape), rng.standard_normal(y_shape)
    _, expected = conv2d_gradients(x, np.zeros(W_shape), gy, stride, pad)
    rows = onednn_plans.side_by_side(x_shape, y_shape, W_shape, stride, pad)
    joined = [joined_in(row, images) for row, images in zip(rows, (x, gy), strict=True)]
    assert all(len(images) < n for images in joined)
    _, found = conv2d_gradients(joined[0], np.zeros(W_shape), joined[1], stride, pad)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def joined_in(shape, images):
    n, _, _, w = images.shape
    groups = shape[0]
    joined = np.zeros((*shape[:3], n // groups, shape[3] // (n // groups)))
    joined[..., :w] = images.reshape(groups, -1, *images.shape[1:]).transpose(0, 2, 3, 1, 4)
    return joined.reshape(shape)


def test_what_is_not_joined():
    """Rows that are long, kernels of one pixel, and what does not fit without padding."""
    assert onednn_plans.side_by_side((8, 2, 6, 6), (8, 3, 4, 4), (3, 2, 3, 3), 1, 0) is None
    assert onednn_plans.side_by_side((8, 2, 16, 16), (8, 3, 16, 16), (3, 2, 3, 3), 1, 1) is None
    assert onednn_plans.side_by_side((8, 2, 8, 8), (8, 3, 8, 8), (3, 2, 1, 1), 1, 0) is None
