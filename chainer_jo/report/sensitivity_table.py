"""The layout that Tables 6 to 11 share: validation accuracy as one parameter varies and the others
stay."""

from chainer_jo.paper.printed import SensitivityTable
from chainer_jo.report.table import Block, Cell, Table, score
from chainer_jo.report.words import trained_on
from chainer_jo.runs.presets import Study

NAMES = {
    "alpha": "α", "beta": "β", "learning_rate": "learning rate", "start_epoch": "start epoch",
    "stop_epoch": "stop epoch",
}  # fmt: skip


#: Validation accuracy at the end of the whole method: of the second step's last epoch.
validation = score("last", "validation")


def sensitivity_table(study: Study, printed: SensitivityTable) -> Table:
    """The table ``printed``; the columns are the paper's values, epochs before any scaling.

    The value that the paper chose, which its table prints in bold, is bold in the header.
    """
    blocks = []
    for parameter in printed.chosen:
        values = printed.keys("value", parameter=parameter)
        cells = []
        for value in values:
            chosen = {**printed.others(parameter), parameter: value}
            runs = [
                study.joint(printed.noise, printed.noise_rate, trial, **chosen)
                for trial in study.sensitivity_trials()
            ]
            paper = printed.value(parameter=parameter, value=value)
            cells.append(Cell({"parameter": parameter}, {"value": value}, runs, validation, paper))
        others = ", ".join(f"{NAMES[k]} = {v:g}" for k, v in printed.others(parameter).items())
        blocks.append(
            Block(
                [f"{value:g}" for value in values],
                [("val (%)", cells)],
                f"{NAMES[parameter]} varies, {others}",
                best="row",
                marked=[f"{printed.chosen[parameter]:g}"],
            )
        )
    note = (
        "Marked in the header: the value that the paper chose. Validation accuracy: of the second "
        "step's last epoch, on images whose labels are true."
    )
    scale = study.preset.time_scale
    if "start_epoch" in printed.chosen and scale != 1:
        note += f" Here epochs are the paper's: schedules are {scale:g} times as long."
    return Table(printed.number, f"{printed.caption}; {trained_on(study)}.", blocks, note)
