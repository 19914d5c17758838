"""SGD with momentum and weight decay (Section 5.2), in one pass over a flat parameter array."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import chainer
import numpy as np

from chainer_jo.engine.backend import current_backend, is_on_gpu
from chainer_jo.engine.cuda import kernels
from chainer_jo.errors import UserError

#: Number of elements updated at a time on a CPU, so that all operands stay in a core's cache.
CHUNK_ELEMENTS = 1 << 15
#: Alignment of parameters on a GPU, in elements.
ALIGNED_ELEMENTS = 4


class Passes:
    """Forward and backward pass of a step, as with an optimizer of Chainer; ours replace both."""

    def whole_step(self) -> AbstractContextManager[None]:
        """Context of both passes."""
        return nullcontext()

    def backward(self, loss: chainer.Variable) -> None:
        """Adds a loss's gradients to the parameters'."""
        loss.backward()


class FlatMomentumSGD(Passes, chainer.Optimizer):
    """SGD with momentum and weight decay: g += wd p, v = momentum v - lr g, p += v; as Chainer's
    ``MomentumSGD`` with the ``WeightDecay`` hook.

    ``setup`` moves all parameters into the flat float32 array ``parameters``; each parameter is a
    view of it. ``velocity`` (v) and ``gradients`` have the same layout. The learning rate ``lr``
    may change at any time. Every parameter decays, is updated, and needs a gradient.

    Raises UserError in ``setup`` for a parameter without a shape, in ``update`` for one without a
    gradient or with updates disabled, and in ``add_hook``.
    """

    target: Any  # the link of `setup`

    def __init__(self, lr: float, momentum: float = 0.9, weight_decay: float = 0.0) -> None:
        super().__init__()
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay

    def setup(self, link: chainer.Link) -> "FlatMomentumSGD":
        super().setup(link)
        named = self._in_order(link)
        xp = chainer.backend.get_array_module(named[0][1].array)
        self.parameters = xp.concatenate([param.array.reshape(-1) for _, param in named])
        self.gradients = xp.zeros_like(self.parameters)
        self.velocity = xp.zeros_like(self.parameters)
        self._scratch = xp.empty(min(CHUNK_ELEMENTS, self.parameters.size), np.float32)
        self._device_lr = xp.empty(1, np.float32)
        self._sent_lr: float | None = None
        self._weights: list[tuple[Any, Any]] = []
        self._scale = 1.0
        self._step_gradients: Mapping[int, Any] = {}
        self._parts: list[tuple[str, Any, Any, Any]] = []  # name, parameter, view of it, velocity
        start = 0
        for name, param in named:
            part = slice(start, start + param.size)
            start = part.stop
            param.array = view = self.parameters[part].reshape(param.shape)
            param.update_rule = chainer.UpdateRule()  # for `Link.disable_update`, which is refused
            self._parts.append((name, param, view, self.velocity[part]))
            if param.ndim == 4:
                self._weights.append((view, self.gradients[part].reshape(param.shape)))
        return self

    def add_hook(self, *_: Any, **__: Any) -> None:
        """Raises UserError: Chainer's hooks need gradients that exist only within `update`."""
        raise UserError(
            "hooks: not called by FlatMomentumSGD; use its weight_decay, or another optimizer"
        )

    @staticmethod
    def _in_order(link: chainer.Link) -> list[tuple[str, Any]]:
        """Parameters by name; on a GPU odd sizes come last, so that the others are aligned."""
        named = sorted(link.namedparams())
        for name, param in named:
            if param.array is None:
                raise UserError(
                    f"parameter {name}: no shape yet, expected a link that is given its sizes"
                )
        if is_on_gpu(named[0][1].array):
            named.sort(key=lambda item: item[1].size % ALIGNED_ELEMENTS != 0)
        return named

    def update(self, lossfun=None, *args, **kwargs) -> None:
        """One SGD step, on the gradients of ``lossfun(*args)`` if it is given."""
        if lossfun is not None:
            with self.whole_step():
                loss = lossfun(*args, **kwargs)
                self.target.cleargrads()
                self.backward(loss)
        self._gather()
        self.step()
        self.t += 1

    def backward(self, loss: chainer.Variable) -> None:
        """Adds a loss's gradients to the parameters', times the backend's loss scale until
        `update`."""
        backend = current_backend()
        self._scale = backend.loss_scale if backend else 1.0
        loss.backward(loss_scale=None if self._scale == 1 else self._scale)

    @contextmanager
    def whole_step(self) -> Iterator[None]:
        """Context of both passes, so that a GPU backend can batch per-layer work; see
        `Backend.step`."""
        backend = current_backend()
        if backend is None or not is_on_gpu(self.parameters):
            yield
            return
        with backend.step(self._weights) as self._step_gradients:
            yield

    def is_finite(self) -> bool:
        """True if no parameter is NaN or infinite; one kernel and one transfer on a GPU."""
        self._take_replaced()
        if is_on_gpu(self.parameters):
            return kernels.all_finite(self.parameters)
        return bool(np.isfinite(self.parameters).all())

    def _take_replaced(self) -> None:
        """Takes over arrays that replaced a parameter's since `setup`."""
        for _, param, view, _ in self._parts:
            if param.array is not view:
                view[...] = param.array
                param.array = view

    def _gather(self) -> None:
        """Fills ``gradients`` from the parameters and from `Backend.step`."""
        self._take_replaced()
        step_gradients, self._step_gradients = self._step_gradients, {}
        factor, self._scale = 1 / self._scale, 1.0
        grads = []
        for name, param, view, _ in self._parts:
            if param.grad is None:
                raise UserError(
                    f"parameter {name}: no gradient, expected a loss that depends on it"
                )
            if not param.update_rule.enabled:
                raise UserError(
                    f"parameter {name}: updates are disabled; use an optimizer of Chainer"
                )
            pointer = view.data.ptr if step_gradients else 0  # on a GPU
            grads.append(step_gradients.get(pointer, param.grad))
        if is_on_gpu(self.gradients):
            kernels.gather(grads, self.gradients, factor)
        else:
            np.concatenate([grad.reshape(-1) for grad in grads], out=self.gradients)
            if factor != 1:
                self.gradients *= np.float32(factor)

    def send_lr(self) -> None:
        """Copies ``lr`` to the GPU; to be called before each launch of a CUDA graph of `step`."""
        if self.lr != self._sent_lr:
            self._device_lr.fill(self.lr)
            self._sent_lr = self.lr

    def step(self) -> None:
        """Applies ``gradients``."""
        self.send_lr()
        if is_on_gpu(self.parameters):
            kernels.momentum_sgd(
                self.parameters,
                self.velocity,
                self.gradients,
                self._device_lr,
                self.momentum,
                self.weight_decay,
            )
            return
        for start in range(0, self.parameters.size, CHUNK_ELEMENTS):
            p = self.parameters[start : start + CHUNK_ELEMENTS]
            v = self.velocity[start : start + CHUNK_ELEMENTS]
            scratch = self._scratch[: p.size]
            np.multiply(p, self.weight_decay, out=scratch)
            scratch += self.gradients[start : start + CHUNK_ELEMENTS]
            scratch *= self.lr
            v *= self.momentum
            v -= scratch
            p += v

    def serialize(self, serializer) -> None:
        """Saves or loads the number of steps and the velocity, in the order of the parameters'
        names; parameters and learning rate are saved by others."""
        self.t = serializer("t", self.t)
        self.epoch = serializer("epoch", self.epoch)
        xp = chainer.backend.get_array_module(self.velocity)
        velocities = [v for *_, v in sorted(self._parts, key=lambda part: part[0])]
        together = serializer("velocity_by_name", xp.concatenate(velocities))
        ends = np.cumsum([v.size for v in velocities]).tolist()
        for v, loaded in zip(velocities, xp.split(together, ends[:-1]), strict=True):
            v[...] = loaded
