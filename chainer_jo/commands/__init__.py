"""What scripts do: read the flags, run what is missing, say how far it is, write the outputs."""

import functools

from chainer_jo.commands import app
from chainer_jo.commands.image_sources import Clothing1M, InMemory

main = functools.partial(app.main, images=InMemory())
clothing1m_main = functools.partial(app.main, images=Clothing1M())

__all__ = ["clothing1m_main", "main"]
