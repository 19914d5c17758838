"""One page of every table, figure and claim in the results folder; runs nothing."""

from chainer_jo.commands import main
from chainer_jo.report.html import Report

if __name__ == "__main__":
    main(Report, __doc__)
