"""The paper's numbers: how they are looked up, and each against the paper's LaTeX source."""

import re
from itertools import product

import paper_source
import pytest

from chainer_jo.reproduction.claims.statements import SECTIONS
from chainer_jo.reproduction.paper import settings, tables

TABLES = {i: getattr(tables, f"TABLE{i}") for i in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13)}
SENSITIVITY = [TABLES[i] for i in range(6, 12)]
PRINTED_PARAMETERS = {
    "α": "alpha", "β": "beta", "learning rate": "learning_rate", "start epoch": "start_epoch",
    "stop epoch": "stop_epoch",
}  # fmt: skip
PARAMETERS = (
    r"learning rate of \$?([^ $]+)\$?,? and used ([\d.]+) for \$\\alpha\$ "
    r"and ([\d.]+) for \$\\beta\$"
)


def in_print(parameters: settings.HyperParameters) -> list[float]:
    """Hyper parameters in the order of the paper's sentences."""
    return [parameters.learning_rate, parameters.alpha, parameters.beta]


#: Numbers of the running text: where the paper has them, the few words that tell them, and ours.
IN_THE_SOURCE = (
    ("Section 5.2", r"random crops .*? with (\d+) pixels", [settings.CIFAR_PADDING]),
    ("Section 5.2",
     r"momentum of ([\d.]+), a weight decay of \$(10\^{-4})\$, and batch size of (\d+)",
     settings.CIFAR_SGD),
    ("Section 5.2", r"for (\d+) epochs and began .*? (\d+)th epoch.*? the past (\d+) epochs",
     settings.CIFAR_FIRST_STEP),
    ("Section 5.2",
     r"for (120) epochs on the labels .*? learning rate of ([\d.]+) and divided it by (\d+) "
     r"after (\d+) and (\d+) epochs", settings.CIFAR_SECOND_STEP),
    ("Table 1", r"(\d+) trials", [settings.COMPARISON_TRIALS]),
    ("Section 5.6", PARAMETERS, in_print(settings.ASYMMETRIC_PARAMETERS)),
    ("Section 5.7", PARAMETERS, in_print(settings.PSEUDO_PARAMETERS)),
    ("Section 5.2", r"to \$(\d+)\\times\1\$, .*? \$(\d+)\\times\2\$",
     [settings.CLOTHING1M_SIDE, settings.CLOTHING1M_CROP]),
    ("Section 5.2",
     r"momentum of ([\d.]+), a weight decay of \$(10\^{-3})\$, and batch size of (\d+)",
     settings.CLOTHING1M_SGD),
    ("Section 5.2", r"for (\d+) epochs and began updating labels from the (\d+)st epoch",
     [settings.CLOTHING1M_FIRST_STEP.epochs, settings.CLOTHING1M_FIRST_STEP.start_epoch]),
    ("Section 5.2", r"1st epoch. We used a " + PARAMETERS,
     in_print(settings.CLOTHING1M_PARAMETERS)),
    ("Section 5.2",
     r"for (10) epochs on the labels .*? learning rate of \$([^$]+)\$ and divided it by (\d+) "
     r"after (\d+) epochs", settings.CLOTHING1M_SECOND_STEP),
    ("Section 5.3", r"for (\d+) epochs with a learning rates of ([\d.]+) or ([\d.]+)\.",
     [settings.FIGURE2_EPOCHS, *settings.FIGURE2_LEARNING_RATES]),
    ("Section 5.3",
     r"for (\d+) epochs. We commenced .*? learning rate of ([\d.]+) and divided it by (\d+) "
     r"after (\d+) and (\d+) epochs", settings.FIGURE3_SCHEDULE),
    ("Section 5.4", r"noise rate \$r=([\d.]+)\$\) for (\d+) epochs",
     [settings.FIGURE4_NOISE_RATE, settings.FIGURE4_EPOCHS]),
    ("Section 5.4", r"top (\d+), (\d+), (\d+), or all", settings.FIGURE4_TOPS),
    ("Section 5.4", r"updating (\d+) labels .*? is ([\d.]+)\\%",
     [settings.FIGURE4_BEST_TOP, settings.FIGURE4_BEST_HARD["test"]]),
    ("Section 5.4", r"test accuracy of the soft-label method is ([\d.]+)\\%",
     [settings.FIGURE4_SOFT["test"]]),
    ("Section 5.4", r"first step is ([\d.]+)\\%, .*? equal to ([\d.]+)\\%",
     [settings.FIGURE4_SOFT["recovery"], settings.FIGURE4_BEST_HARD["recovery"]]),
    ("Section 5.5", r"the (\d+)th epoch", [settings.CROSS_ENTROPY_DROP_EPOCH]),
    ("Section 5.6", r"only when the noise rate is (\d+)\\%",
     [100 * settings.LEAST_GAIN_NOISE_RATE]),
    ("Section 5.7", r"the noise rate \$r=([\d.]+),([\d.]+)\$", settings.FIGURES_5_6_NOISE_RATES),
)  # fmt: skip


def flat(fields: dict) -> list[float]:
    """The numbers of a dataclass, in order."""
    return [x for v in fields.values() for x in (v if isinstance(v, tuple) else [v])]


def scientific(printed: str) -> str:
    r"""``8\times10^{-4}`` as Python spells it."""
    return re.sub(r"10\^{(.*)}", r"1e\1", printed).replace(r"\times1e", "e")


def test_a_number_by_keys():
    joint = "joint", "last", "test", 0.5
    assert tables.TABLE1.cells[joint] == 89.8 and joint in tables.TABLE1.bold
    assert ("cross_entropy", *joint[1:]) not in tables.TABLE1.bold
    assert tables.TABLE3.cells["forward", "quoted"] == 69.84
    with pytest.raises(KeyError, match="'rate'"):
        tables.TABLE1.keys("rate")


@pytest.mark.parametrize("noise", [("symmetric", 0.4), ("symmetric", None), ("open", 0.5)])
def test_other_noise_has_no_hyper_parameters(noise):
    with pytest.raises(KeyError, match="no hyper parameters"):
        settings.hyper_parameters(*noise)


@pytest.mark.parametrize("table", SENSITIVITY[:4])
def test_the_chosen_values_are_the_ones_used(table):
    assert table.chosen == vars(settings.hyper_parameters(table.noise, table.noise_rate))


class TestAgainstTheSource:
    """Cell by cell: what the LaTeX prints, laid out anew from the data."""

    @pytest.mark.parametrize("table", [tables.TABLE1, tables.TABLE2])
    def test_comparisons(self, table):
        _, (_, *rates), *lines = paper_source.cells(table.number)
        accuracies = list(product(table.keys("accuracy"), table.keys("noise_rate")))
        assert [int(rate) / 100 for rate, _ in rates] == [rate for _, rate in accuracies]
        expected = []
        for i, method in enumerate(table.keys("method"), 1):
            for score in table.keys("score"):
                head = [str(i), tables.METHODS[method], score] if score == "best" else [score]
                keys = [(method, score, *column) for column in accuracies]
                expected.append((head, [(table.cells[key], key in table.bold) for key in keys]))
        printed = []
        for line in lines:
            head = [cell for cell, _ in line[: -len(accuracies)]]
            printed.append((head, [(float(c), bold) for c, bold in line[-len(accuracies) :]]))
        assert printed == expected

    def test_clothing1m(self):
        _, *lines = paper_source.cells(tables.TABLE3.number)
        heads = [
            ["1", "Cross Entropy Loss"], ["2", "Forward"],
            ["3", "Cross Entropy Loss", "best"], ["(reproduced)", "last"],
            ["4", "Our Method", "best"], ["last"],
        ]  # fmt: skip
        assert [[cell for cell, _ in line[:-1]] for line in lines] == heads
        printed = [(float(line[-1][0]), line[-1][1]) for line in lines]
        assert printed == [
            (v, keys in tables.TABLE3.bold) for keys, v in tables.TABLE3.cells.items()
        ]

    def test_hyper_parameters(self):
        (_, *rates), *lines = paper_source.cells(tables.TABLE5.number)
        printed = {
            (PRINTED_PARAMETERS[name], int(rate) / 100): float(value)
            for (name, _), *values in lines
            for (rate, _), (value, _) in zip(rates, values, strict=True)
        }
        assert list(printed.items()) == list(tables.TABLE5.cells.items())

    @pytest.mark.parametrize("table", SENSITIVITY, ids=lambda table: f"Table {table.number}")
    def test_sensitivity(self, table):
        printed, chosen, fixed, stated = {}, {}, {}, {}
        for line in paper_source.cells(table.number):
            (head, _), *values = line
            if "=" in head:
                stated = dict(part.split("=") for part in head.split(", "))
            elif head in PRINTED_PARAMETERS:
                parameter, varied = PRINTED_PARAMETERS[head], values
                ((bold, _),) = [cell for cell in values if cell[1]]
                chosen[parameter] = float(bold)
                fixed[parameter] = {
                    PRINTED_PARAMETERS[k.strip()]: float(v) for k, v in stated.items()
                }
            else:
                assert head == "val (%)"
                for (value, _), (accuracy, _) in zip(varied, values, strict=True):
                    printed[parameter, float(value)] = float(accuracy)
        assert list(printed.items()) == list(table.cells.items())
        assert chosen == table.chosen
        if stated:
            assert fixed == {parameter: table.others(parameter) for parameter in table.chosen}

    @pytest.mark.parametrize("table", [tables.TABLE12, tables.TABLE13])
    def test_probability_ranges(self, table):
        header, accuracies, numbers = (
            [cell for cell, _ in line] for line in paper_source.cells(table.number)
        )
        assert header == ["p", *table.keys("range")]
        assert (accuracies[0], numbers[0]) == ("acc (%)", "number")
        printed = [float(value) for value in accuracies[1:] + numbers[1:]]
        assert printed == list(table.cells.values())

    @pytest.mark.parametrize(("place", "words", "ours"), IN_THE_SOURCE)
    def test_numbers_of_the_text(self, place, words, ours):
        printed = re.search(words, paper_source.places()[place]).groups()
        numbers = ours if isinstance(ours, list | tuple) else flat(vars(ours))
        assert [float(scientific(each)) for each in printed] == list(numbers)

    def test_the_words_are_our_own(self):
        ours = [table.caption for table in TABLES.values()]
        for words in ours + [claim.statement for claims in SECTIONS.values() for claim in claims]:
            paper_source.assert_own_words(words)
