"""Tables 1 to 13 of the paper, drawn as printed there; a star marks what is in bold.

Nothing is to be changed: tests compare all numbers with the paper's LaTeX source.
"""

from chainer_jo.reproduction.paper.printed import (
    Keys,
    Number,
    PrintedTable,
    SensitivityTable,
    number,
    printed_table,
    rows,
)

METHODS = {
    "cross_entropy": "Cross Entropy Loss",
    "forward": "Forward",
    "cnn_crf": "CNN-CRF",
    "joint": "Our Method",
}
"""The methods of Tables 1 to 3 and the names they have there."""


def _comparison(table_number: int, noise: str, text: str) -> PrintedTable:
    """Tables 1 and 2: method and score down, accuracy and noise rate across."""
    header, *lines = rows(text)
    rates = [number(rate) / 100 for rate in header.cells[: len(header.cells) // 2]]
    columns = [(accuracy, rate) for accuracy in ("test", "recovery") for rate in rates]
    caption = f"Test and label accuracy under {noise} noise, by method and noise rate"
    names = ("method", "score", "accuracy", "noise_rate")
    return printed_table(table_number, caption, names, lines, columns)


TABLE1 = _comparison(1, "symmetric", """
    noise rate (%)     :    0    10    30    50    70    90  |     0    10    30    50    70    90
    cross_entropy best :  93.5  91.0  88.4  85.0  78.4  41.1 | *100.0  96.4  92.7  88.2  80.1  41.4
    cross_entropy last :  93.4  87.0  72.2  55.3  36.6  20.4 | *100.0  91.1  74.6  57.6  39.6  21.7
    joint best         :  93.4  92.7  91.4  89.6  85.9  58.0 | *100.0  97.9 *95.1  91.7  86.3  58.2
    joint last         : *93.6 *92.9 *91.5 *89.8 *86.0 *58.3 |   99.9 *98.1 *95.1 *91.8 *86.4 *58.3
""")  # fmt: skip

TABLE2 = _comparison(2, "asymmetric", """
    noise rate (%)     :   10    20    30    40    50  |   10    20    30    40    50
    cross_entropy best :  91.8  90.8  90.0  87.1  77.3 |  97.2  95.8  94.3  91.0  80.5
    cross_entropy last :  89.8  85.4  81.0  75.7  70.5 |  95.0  90.2  85.3  80.2  75.2
    forward best       :  92.4  91.4  91.0  90.3  83.8 |  97.7  96.7  95.9  94.7  88.0
    forward last       :  91.7  89.7  88.0  86.4  80.9 |  97.9  95.8  93.6  91.5  85.5
    cnn_crf best       :  92.0  91.5  90.7  89.5  84.0 |  97.4  96.5  95.3  93.7  88.1
    cnn_crf last       :  90.3  86.6  83.6  79.7  76.4 |  95.1  90.5  86.4  82.1  78.7
    joint best         : *93.2  92.7 *92.4  91.5  84.6 | *98.3 *97.2 *96.3 *95.2 *88.3
    joint last         : *93.2 *92.8 *92.4 *91.7 *84.7 |  98.1  97.1 *96.3 *95.2  88.1
""")  # fmt: skip


TABLE3 = printed_table(
    3,
    "Test accuracy under the noise that labels from the web have, by method",
    ("method", "score"),
    # The rows quoted from Patrini et al. have no best and last; their score is "quoted".
    rows("""
    cross_entropy quoted : 68.94
    forward quoted       : 69.84
    cross_entropy best   : 69.15
    cross_entropy last   : 66.76
    joint best           : 72.16
    joint last           : *72.23
    """),
    [()],
)

TABLE4_CAPTION = "The network, part by part"


TABLE5 = printed_table(
    5,
    "The first step's hyper parameters under symmetric noise, by noise rate",
    ("parameter", "noise_rate"),
    rows("""
    alpha          : 1.2  1.2  1.2  1.2  1.2  0.8
    beta           : 0.8  0.8  0.8  0.8  0.8  0.4
    learning_rate  : 0.01 0.02 0.03 0.04 0.08 0.12
    """),
    [(rate,) for rate in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)],
)


def _sensitivity(
    table_number: int, noise: str, rate: float, text: str, fixed=()
) -> SensitivityTable:
    """Tables 6 to 11: lines of a parameter's values, one of them starred, and of accuracies."""
    cells: dict[Keys, Number] = {}
    chosen: dict[str, Number] = {}
    lines = list(rows(text))
    for values, accuracies in zip(lines[::2], lines[1::2], strict=True):
        for value, accuracy in zip(map(number, values.cells), accuracies.cells, strict=True):
            cells[values.head, value] = number(accuracy)
        chosen[values.head] = number(values.cells[values.starred.index(True)])
    varied = (
        "label updates start (t1) or stop (t2) at another epoch"
        if "start_epoch" in chosen
        else "one of alpha, beta and the learning rate varies"
    )
    return SensitivityTable(
        table_number,
        f"Validation accuracy as {varied}, under {noise} noise, r = {rate}",
        ("parameter", "value"),
        cells,
        noise=noise,
        noise_rate=rate,
        chosen=chosen,
        fixed=dict(fixed),
    )


TABLE6 = _sensitivity(6, "asymmetric", 0.4, """
    alpha         :  0.1   0.2   0.5  *0.8   1.0   2.0   5.0
    val (%)       : 91.9  92.0  91.7  92.0  92.1  92.1  88.8
    beta          :  0.05  0.1   0.2  *0.4   0.5   1.0   2.0
    val (%)       : 90.8  91.7  91.8  92.0  91.6  89.5  91.1
    learning_rate :  0.005 0.01  0.02 *0.03  0.05  0.1   0.2
    val (%)       : 90.6  90.9  91.3  92.0  92.1  91.3  88.5
""")  # fmt: skip

TABLE7 = _sensitivity(7, "asymmetric", 0.2, """
    alpha         :  0.1   0.2   0.5  *0.8   1.0   2.0   5.0
    val (%)       : 92.9  92.9  93.0  93.2  93.1  93.2  89.7
    beta          :  0.05  0.1   0.2  *0.4   0.5   1.0   2.0
    val (%)       : 92.6  93.0  93.2  93.2  93.1  92.8  92.8
    learning_rate :  0.005 0.01  0.02 *0.03  0.05  0.1   0.2
    val (%)       : 92.5  92.7  92.7  93.2  92.7  91.8  89.2
""")  # fmt: skip

TABLE8 = _sensitivity(8, "symmetric", 0.7, """
    alpha         :  0.1   0.2   0.5   1.0  *1.2   2.0   5.0
    val (%)       : 85.7  86.0  85.5  85.9  85.5  85.7  83.8
    beta          :  0.05  0.1   0.2   0.5  *0.8   1.0   2.0
    val (%)       : 82.0  82.3  83.1  85.3  85.5  85.2  30.3
    learning_rate :  0.005 0.01  0.02  0.05 *0.08  0.1   0.2
    val (%)       : 79.5  80.7  82.8  85.4  85.5  85.4  83.8
""")  # fmt: skip

TABLE9 = _sensitivity(9, "symmetric", 0.3, """
    alpha         :  0.1   0.2   0.5   1.0  *1.2   2.0   5.0
    val (%)       : 91.6  91.7  91.5  91.8  91.8  91.8  89.9
    beta          :  0.05  0.1   0.2   0.5  *0.8   1.0   2.0
    val (%)       : 90.0  90.4  91.2  91.8  91.8  91.9  91.0
    learning_rate :  0.005 0.01  0.02 *0.03  0.05  0.1   0.2
    val (%)       : 90.1  90.7  91.0  91.8  92.1  91.1  89.0
""")  # fmt: skip


TABLE10 = _sensitivity(10, "asymmetric", 0.4, """
    start_epoch :   0    50   *70   100   150
    val (%)     : 58.4  90.3  91.3  91.4  91.6
    stop_epoch  :  100   150  *200  250   300
    val (%)     : 91.8  91.5  91.3  90.8  90.7
""", {"alpha": 0.8, "beta": 0.4, "learning_rate": 0.1})  # fmt: skip

TABLE11 = _sensitivity(11, "symmetric", 0.7, """
    start_epoch :   0    50   *70   100   150
    val (%)     : 38.0  84.7  85.5  86.1  85.6
    stop_epoch  :  100   150  *200  250   300
    val (%)     : 85.0  85.6  85.5  85.9  85.6
""", {"alpha": 1.2, "beta": 0.8, "learning_rate": 0.08})  # fmt: skip


def _probability_ranges(table_number: int, noise: str, rate: float, text: str) -> PrintedTable:
    """Tables 12 and 13: label accuracy and number of images per range of probability."""
    header, *lines = rows(text)
    caption = (
        "How many updated labels are right, by the range of their highest probability, under "
        f"{noise} noise, r = {rate}"
    )
    columns = [(span,) for span in header.cells]
    return printed_table(table_number, caption, ("quantity", "range"), lines, columns)


def probability_range(text: str) -> tuple[float, float]:
    """Upper and lower end of a range of Tables 12 and 13: "0.99-0.95" is (0.99, 0.95)."""
    upper, lower = text.split("-")
    return float(upper), float(lower)


TABLE12 = _probability_ranges(12, "asymmetric", 0.4, """
    p        : 1-0.99  0.99-0.95  0.95-0.9  0.9-0 |  1-0
    accuracy :  99.8     96.9       91.3     73.1 |  95.1
    number   : 27046     8647       3484     5823 | 45000
""")  # fmt: skip

TABLE13 = _probability_ranges(13, "symmetric", 0.7, """
    p        : 1-0.99  0.99-0.95  0.95-0.9  0.9-0 |  1-0
    accuracy :  97.5     82.2       70.6     53.3 |  86.4
    number   : 27591     7368       3351     6690 | 45000
""")  # fmt: skip
