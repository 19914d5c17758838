"""Operations as cuDNN graphs, with named inputs and outputs.

Tensors have the logical shape (n, c, h, w) and NHWC strides; weights (o, c, kh, kw) likewise.
Arithmetic is float32 for every type of the activations.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy

from chainer_jo.engine.interface import Shape


def nhwc_strides(shape: Shape) -> list[int]:
    """Strides in elements of a tensor of shape (n, c, h, w) whose memory is (n, h, w, c)."""
    _, c, h, w = shape
    return [c * h * w, 1, c * w, c]


def output_shape(x_shape: Shape, W_shape: Shape, stride: int, pad: int) -> Shape:
    """Shape (n, o, h', w') of a convolution's output."""
    n, _, *size = x_shape
    o, _, *kernel = W_shape
    return n, o, *((s + 2 * pad - k) // stride + 1 for s, k in zip(size, kernel, strict=True))


def address(x: Any) -> int:
    """Address of a CuPy or NumPy array."""
    return x.ctypes.data if isinstance(x, numpy.ndarray) else x.data.ptr


class Graph:
    """A cuDNN graph under construction, with named inputs and outputs."""

    def __init__(self, library: ModuleType, handle: Any, precision: str) -> None:
        types = library.data_type
        self.float = types.FLOAT
        self.activation_type = types.HALF if precision == "mixed" else types.FLOAT
        self.nodes = library.pygraph(
            io_data_type=self.activation_type,
            intermediate_data_type=types.FLOAT,
            compute_data_type=types.FLOAT,
            handle=handle,
        )
        self.uids: dict[str, int] = {}

    def _uid(self, name: str) -> int:
        self.uids[name] = len(self.uids) + 1
        return self.uids[name]

    def activation(self, name: str, shape: Shape) -> Any:
        """An input of the activations' type."""
        return self._input(name, shape, self.activation_type)

    def vector(self, name: str, channels: int) -> Any:
        """A float32 input, one number per channel."""
        return self._input(name, (1, channels, 1, 1), self.float)

    def scalar(self, name: str) -> Any:
        """A float32 input that is read from host memory."""
        return self._input(name, (1, 1, 1, 1), self.float, is_pass_by_value=True)

    def _input(self, name: str, shape: Shape, kind: Any, **options: bool) -> Any:
        return self.nodes.tensor(
            dim=list(shape), stride=nhwc_strides(shape), data_type=kind, name=name,
            uid=self._uid(name), **options,
        )  # fmt: skip

    def outputs(self, **tensors: Any) -> None:
        """Float32 results, one number per channel."""
        for name, tensor in tensors.items():
            tensor.set_output(True).set_data_type(self.float).set_uid(self._uid(name))

    def result(self, name: str, tensor: Any, shape: Shape) -> None:
        """A result of the activations' type."""
        self.shape(tensor, shape).set_output(True).set_uid(self._uid(name))

    def shape(self, tensor: Any, shape: Shape) -> Any:
        """Gives a node's output its shape and the activations' type."""
        tensor.set_data_type(self.activation_type)
        return tensor.set_dim(list(shape)).set_stride(nhwc_strides(shape))


def convolution(
    graph: Graph, x_shape: Shape, W_shape: Shape, stride: int, pad: int, add: bool
) -> None:
    """y = x * W [+ residual]."""
    y = graph.nodes.conv_fprop(
        image=graph.activation("x", x_shape),
        weight=graph.activation("W", W_shape),
        **_geometry(stride, pad),
    )
    shape = output_shape(x_shape, W_shape, stride, pad)
    if add:
        y = graph.nodes.add(a=y, b=graph.activation("residual", shape))
    graph.result("y", y, shape)


def convolution_grad_input(
    graph: Graph, x_shape: Shape, W_shape: Shape, stride: int, pad: int, add: bool
) -> None:
    """gx = the gradient from gy [+ the gradient that is there already]."""
    gx = graph.nodes.conv_dgrad(
        loss=graph.activation("gy", output_shape(x_shape, W_shape, stride, pad)),
        filter=graph.activation("W", W_shape),
        **_geometry(stride, pad),
    )
    if add:
        # Left virtual and in float32: only the sum is rounded.
        gx.set_dim(list(x_shape)).set_stride(nhwc_strides(x_shape))
        gx = graph.nodes.add(a=gx, b=graph.activation("residual", x_shape))
    graph.result("gx", gx, x_shape)


def convolution_grad_weight(
    graph: Graph, x_shape: Shape, W_shape: Shape, stride: int, pad: int
) -> None:
    """Gradient gW, of the activations' type: few cuDNN engines write float32 from float16."""
    gW = graph.nodes.conv_wgrad(
        image=graph.activation("x", x_shape),
        loss=graph.activation("gy", output_shape(x_shape, W_shape, stride, pad)),
        **_geometry(stride, pad),
    )
    graph.result("gW", gW, W_shape)


def batch_norm(graph: Graph, shape: Shape) -> None:
    """Batch normalisation and ReLU y of x; mean and inverse standard deviation.

    cudnn-frontend requires the running averages; the caller updates Chainer's.
    """
    c = shape[1]
    y, mean, inverse, next_mean, next_var = graph.nodes.batchnorm(
        input=graph.activation("x", shape),
        scale=graph.vector("gamma", c),
        bias=graph.vector("beta", c),
        in_running_mean=graph.vector("average_mean", c),
        in_running_var=graph.vector("average_var", c),
        epsilon=graph.scalar("eps"),
        momentum=graph.scalar("momentum"),
    )
    graph.result("y", graph.nodes.relu(input=y), shape)
    averages = {"next_average_mean": next_mean, "next_average_var": next_var}  # nobody reads them
    graph.outputs(mean=mean, inverse=inverse, **averages)


def batch_norm_grad(graph: Graph, shape: Shape) -> None:
    """Gradients gx, ggamma, gbeta of `batch_norm` from gy, with the sign of y recomputed."""
    c = shape[1]
    x, gy = graph.activation("x", shape), graph.activation("gy", shape)
    gamma, mean = graph.vector("gamma", c), graph.vector("mean", c)
    inverse = graph.vector("inverse", c)
    y = graph.nodes.batchnorm_inference(
        input=x, mean=mean, inv_variance=inverse, scale=gamma, bias=graph.vector("beta", c)
    )
    gy = graph.shape(graph.nodes.relu_backward(loss=gy, input=y), shape)
    gx, ggamma, gbeta = graph.nodes.batchnorm_backward(
        grad=gy, input=x, scale=gamma, mean=mean, inv_variance=inverse
    )
    graph.result("gx", gx, shape)
    graph.outputs(ggamma=ggamma, gbeta=gbeta)


def _geometry(stride: int, pad: int) -> dict[str, list[int]]:
    return {"padding": [pad] * 2, "stride": [stride] * 2, "dilation": [1, 1]}
