"""Text of terminals."""

import textwrap

from chainer_jo.text import aligned, for_terminal

NAMES = [f"{accuracy} {rate} %" for accuracy in ("Test", "Labels") for rate in (0, 50, 90)]
ROWS = [["", *NAMES], ["noisy", "", "", "", *"abc"], ["joint", *"defghi"]]


def test_a_table_that_does_not_fit_is_halved():
    whole = "\n".join(aligned(ROWS))
    page = f"A note that is long.\n\n{whole}\n"
    assert for_terminal(page, len(whole.split("\n")[0])) == page
    test, labels = aligned([r[:4] for r in ROWS[::2]]), aligned([[r[0], *r[4:]] for r in ROWS])
    halves = ["\n".join(part) for part in (test, labels)]
    assert (
        for_terminal(page, len(labels[0]))
        == "\n\n".join(["A note that is long.", *halves, ""])[:-1]
    )
    narrow = for_terminal(page, 24)
    assert narrow.startswith("A note that is long.\n\n") and narrow.count("| joint") == 6


def test_a_table_with_long_cells_is_a_table_for_each_row():
    long = "a claim of the paper in very many words"
    rows = [
        ["claim", "at", "word"],
        [long, "r = 0.1<br>r = 0.3", "agrees<br>unclear"],
        ["", "r", ""],
    ]
    page = "\n".join(["| " + " | ".join(row) + " |" for row in rows])
    first = aligned([["at", "word"], ["r = 0.1", "agrees"], ["r = 0.3", "unclear"]])
    second = aligned([["at", "word"], ["r", ""]])
    assert for_terminal(page, 20) == "\n".join([*textwrap.wrap(long, 20), *first, "", *second, ""])


def test_items_of_a_list_are_wrapped_one_by_one():
    items = ["- one of many words", "- two"]
    expected = "\n".join(textwrap.fill(item, 12) for item in items) + "\n"
    assert for_terminal("\n".join(items), 12) == expected
