"""Cell-by-cell comparison of your results with the committed ones; computes nothing."""

from chainer_jo.reproduction.commands.compare import main

if __name__ == "__main__":
    main(__doc__)
