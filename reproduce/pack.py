"""Packs your finished runs into results/reference, where they can be committed."""

from chainer_jo.reproduction.commands.pack import main

if __name__ == "__main__":
    main(__doc__)
