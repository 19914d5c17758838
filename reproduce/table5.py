"""Table 5: hyper-parameters of the first step on SN-CIFAR, as used by the runs of Table 1."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import trained_on
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.tables_and_figures.static_table import StaticTable


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
    caption = f"{printed.caption}; {trained_on(study)}."
    return StaticTable(printed.number, caption, header, lambda: rows)


if __name__ == "__main__":
    main(table, __doc__)
