"""Table 5: hyper-parameters of the first step on SN-CIFAR, as used by the runs of Table 1."""

from chainer_jo.commands import main
from chainer_jo.paper import tables
from chainer_jo.report.static_table import StaticTable
from chainer_jo.report.words import trained_on
from chainer_jo.runs.presets import Study


def table(study: Study) -> StaticTable:
    printed = tables.TABLE5
    rates = printed.keys("noise_rate")
    runs = [study.first_step("symmetric", rate, trial=0) for rate in rates]
    rows = [
        ("alpha", *(run.alpha for run in runs)),
        ("beta", *(run.beta for run in runs)),
        ("learning rate", *(run.optimization.learning_rate for run in runs)),
    ]
    header = ("noise rate (%)", *(f"{100 * rate:g}" for rate in rates))
    return StaticTable(printed.number, f"{printed.caption}; {trained_on(study)}.", header, rows)


if __name__ == "__main__":
    main(table, __doc__)
