"""What scripts do: read the flags, run what is missing, say how far it is, write the outputs."""

import functools
import os

# Nothing is shown. What a notebook names is not there for a process that it starts.
os.environ["MPLBACKEND"] = "agg"

from chainer_jo.commands import app
from chainer_jo.commands.image_sources import Clothing1M, InMemory

main = functools.partial(app.main, images=InMemory())
clothing1m_main = functools.partial(app.main, images=Clothing1M())

__all__ = ["clothing1m_main", "main"]
