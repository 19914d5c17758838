"""Packs the runs computed here into results/reference, so that they can be committed."""

from chainer_jo.commands.pack import main

if __name__ == "__main__":
    main(__doc__)
