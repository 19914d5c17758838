"""Holds every claim of the paper against the results there are; runs nothing."""

from all import claims

from chainer_jo.commands import main

if __name__ == "__main__":
    main(claims, __doc__)
