"""What ``reproduce/pack.py`` does: the runs computed here, packed to be committed."""

from __future__ import annotations

import shutil

from chainer_jo.commands import reference
from chainer_jo.errors import UserError
from chainer_jo.experiments import packed_runs
from chainer_jo.experiments.store import RunStore
from chainer_jo.functions.providers import cudnn_choices

#: What runs go by beside their descriptions: the data, and on a GPU cuDNN's plans.
BESIDE = ("data.json", cudnn_choices.NAME)


def main(description: str, argv: list[str] | None = None) -> None:
    """Entry point; ends the process with 0 or 2 (bad input)."""
    reference.run(lambda: pack(description, argv))


def pack(description: str, argv: list[str] | None = None) -> bool:
    """Packs every finished run of a results folder, with `BESIDE`, and says so.

    Raises
    ------
    UserError
        if there is no finished run.
    """
    flags = reference.parser(description).parse_args(argv)
    here, there = flags.results / flags.preset, flags.reference / flags.preset
    store = RunStore(here)
    if not store.results():
        raise UserError(f"{here}: no finished run there, expected a results folder")
    number = store.pack(there)
    for name in BESIDE:
        if (here / name).exists() and here != there:
            (there / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(here / name, there / name)
    path = there / packed_runs.NAME
    print(f"{path}: {number} runs in {path.stat().st_size / 1e6:.2f} MB")
    return True
