"""Holds what was computed here against the committed results, cell by cell; runs nothing."""

from chainer_jo.commands.compare import main

if __name__ == "__main__":
    main(__doc__)
