"""One page of every table, figure and claim in the results folder; runs nothing."""

from all import report

from chainer_jo.commands import main

if __name__ == "__main__":
    main(report, __doc__)
