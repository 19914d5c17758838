"""Recorded forward and backward passes, replayed without Chainer.

On a small network the overhead of Chainer, NumPy and ctypes takes as long as the arithmetic.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import chainer
import numpy
from chainer import Variable

from chainer_jo.engine.backend import current_backend
from chainer_jo.engine.functions import SingleBackward


def replayed(function: Callable[[Any], Variable], link: chainer.Link, x: Any) -> Variable:
    """`function(x)`; in training from a recording, if the backend records.

    Gradients from a recording are always in the same arrays: the next backward pass overwrites
    them.

    Parameters
    ----------
    function : composed of this package's functions alone; depends only on x, parameters of `link`,
        each used once, and persistent arrays below `link`. All have to be C-contiguous to be
        recorded, since others are copied.
    x : float32 (n, c, h, w). A call is not recorded if x needs a gradient or has another shape than
        in the first call, or before the backward pass of the last call.
    """
    backend, config = current_backend(), chainer.config
    if backend is None or backend.recordings is None or not config.train:
        return function(x)
    recording = backend.recordings.get(link)
    if recording is None or not recording.is_of_these_arrays():
        recording = None
        backend.recordings.pop(link, None)
        gc.collect()  # frees networks that nobody trains any more, and with them their recordings
        recording = backend.recordings[link] = Recording(backend.recorder(), link, x.shape)
    x = chainer.as_variable(x)
    if not config.enable_backprop or x.requires_grad or not recording.is_for(x):
        return function(x)
    return Replay(recording, function).apply((x, *recording.parameters))[0]


class Recording:
    """Calls of one forward and one backward pass, and their arrays."""

    def __init__(self, recorder: Any, link: chainer.Link, x_shape: tuple[int, ...]) -> None:
        self._recorder = recorder
        self.parameters = list(link.params())
        self._arrays: list[tuple[Any, str, Any]] = [(p, "array", p.array) for p in self.parameters]
        for part in link.links(skipself=True):
            self._arrays += [(part, name, getattr(part, name)) for name in part._persistent]
        self._contiguous = all(array.flags.c_contiguous for _, _, array in self._arrays)
        self._x = recorder.empty(x_shape)
        self._y: Any = None
        self._gy: Any = None
        self._gradients: list[Variable | None] = []
        self._forward: list[Callable[[], object]] = []
        self._backward: list[Callable[[], object]] = []
        self._latest: Callable[[], Replay | None] = lambda: None

    @property
    def calls(self) -> list[Callable[[], object]]:
        """All recorded calls."""
        return [*self._forward, *self._backward]

    def is_of_these_arrays(self) -> bool:
        """True if parameters and running statistics are still the recorded arrays."""
        return all(getattr(owner, name) is array for owner, name, array in self._arrays)

    def is_for(self, x: Variable) -> bool:
        """True if x has the recorded shape, no backward pass is due, and no array is copied."""
        latest = self._latest()
        free = latest is None or not latest.waits
        return self._contiguous and free and x.shape == self._x.shape

    def forward(self, node: Replay, function: Callable, x: Any) -> Any:
        """Value of the function; saves the graph, if there is one, in `node`."""
        self._latest = weakref.ref(node)
        numpy.copyto(self._x, x)
        if self._backward:
            for call in self._forward:
                call()
            node.keep(None)
        else:
            with self._recorded() as self._forward, chainer.force_backprop_mode():
                y = function(self._x)
            self._y = y.array
            node.keep(y)
        return self._y.copy()

    def backward(self, y: Variable | None, gy: Any) -> list[Variable | None]:
        """Gradients by parameter, None for parameters that the function does not use."""
        if y is None:
            numpy.copyto(self._gy, gy)
            for call in self._backward:
                call()
            return self._gradients
        self._gy = gy.copy()
        y.grad_var = Variable(self._gy)
        existing = [parameter.grad_var for parameter in self.parameters]
        for parameter in self.parameters:
            parameter.cleargrad()
        with self._recorded() as calls:
            y.backward()
        self._gradients = [parameter.grad_var for parameter in self.parameters]
        self._backward = calls
        for parameter, gradient in zip(self.parameters, existing, strict=True):
            parameter.grad_var = gradient
        return self._gradients

    @contextmanager
    def _recorded(self) -> Iterator[list[Callable[[], object]]]:
        library = self._recorder.library
        library.calls = []
        try:
            with chainer.using_config("jo_backend", self._recorder):
                yield library.calls
        finally:
            library.calls = None


class Replay(SingleBackward):
    """A `Recording` as a function of x and the parameters."""

    def __init__(self, recording: Recording, function: Callable) -> None:
        super().__init__()
        self._recording = recording
        self._function = function

    @property
    def waits(self) -> bool:
        """True if the backward pass is due."""
        return self._saved is not None

    def forward(self, inputs: tuple) -> tuple:
        return (self._recording.forward(self, self._function, inputs[0]),)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> tuple:
        (y,) = self.take()
        # Existing gradients may be in the arrays that are written now.
        existing = [None if g is None else g.array.copy() for g in grad_inputs]
        gradients = self._recording.backward(y, grad_outputs[0].array)
        return tuple(
            _sum(gradients[i - 1], g) for i, g in zip(target_input_indexes, existing, strict=True)
        )


def _sum(gradient: Variable | None, existing: Any | None) -> Variable | None:
    if existing is None:
        return gradient
    total = existing if gradient is None else existing + gradient.array
    return Variable(total, requires_grad=False)
