"""``python -m chainer_jo`` is ``chainer-jo``."""

from chainer_jo.relabel.cli import main

if __name__ == "__main__":  # not in the processes of the runs
    main()
