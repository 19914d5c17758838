"""Writes results/README.md, and regions of README.md, from results."""

from pathlib import Path

from committed import references
from first_page import labels_of_people, learning_rate, result
from readme_regions import claims, fill, not_run, wrapped
from results_page import page

from chainer_jo import files
from chainer_jo.command_line import Parser, exit_codes

ROOT = Path(__file__).resolve().parent.parent
#: Regions of the README, by name.
REGIONS = {
    "result": result,
    "claims": claims,
    "learning rate": lambda found: wrapped(learning_rate(found)),
    "labels of people": lambda found: labels_of_people(),
    "not run": not_run,
}


def texts() -> dict[Path, str]:
    """Every file that is written, with its whole text."""
    found = references(ROOT / "results/reference", ROOT / "figures/reference")
    readme = ROOT / "README.md"
    text = readme.read_text("utf-8")
    for name, region in REGIONS.items():
        text = fill(text, name, region(found))
    costs = files.read_json(ROOT / "benchmarks/results/script_costs-digits.json")
    return {readme: text, ROOT / "results/README.md": page(found, costs)}


if __name__ == "__main__":
    with exit_codes():
        Parser(description=__doc__, allow_abbrev=False).parse_args()
        for path, text in texts().items():
            files.write_text(path, text)
            print(path.relative_to(ROOT))
