"""Every claim of the paper, compared over the finished runs; computes nothing."""

from all import claims

from chainer_jo.reproduction.commands import main

if __name__ == "__main__":
    main(claims, __doc__)
