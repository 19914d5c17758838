"""What scripts do: read the flags, run what is missing, say how far it is, write the outputs."""

import functools

from chainer_jo.commands import app
from chainer_jo.commands.cifar import Cifar

main = functools.partial(app.main, suite=Cifar())

__all__ = ["main"]
