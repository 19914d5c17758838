"""What scripts do: read the flags, run what is missing, say how far it is, write the outputs."""

from chainer_jo.commands.app import main

__all__ = ["main"]
