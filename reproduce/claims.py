"""Holds every claim of the paper against the results there are; runs nothing."""

from chainer_jo.commands import main
from chainer_jo.report import Claims

if __name__ == "__main__":
    main(Claims, __doc__)
