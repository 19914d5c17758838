"""HTML page of all tables, figures and claims in the results folder; computes nothing."""

from all import report

from chainer_jo.commands import main

if __name__ == "__main__":
    main(report, __doc__)
