"""The examples run, and compute what they say."""

import json
import re
import shutil

import numpy as np
import processes
import pytest
from PIL import Image
from processes import ROOT, needs_git
from script_runs import script

EXAMPLES = ROOT / "examples"


def quickly(folder):
    """Flags with which an example makes its table in seconds."""
    places = "--results", folder / "results", "--figures", folder / "figures"
    return "--preset", "quick", "--device", "cpu", *places


def cells(folder, number):
    """The table that an example has made: trials by what addresses the cell."""
    (path,) = folder.glob(f"results/*/table{number}.json")
    table = json.loads(path.read_text())
    assert table["complete"]
    return {tuple({**c["row"], **c["column"]}.values()): c["trials"] for c in table["cells"]}


def untracked(folder):
    """What git would show if the folder were the repository."""
    shutil.copy(ROOT / ".gitignore", folder)
    shown = ""
    for words in (["init", "--quiet"], ["status", "--porcelain"]):
        shown = processes.run(["git", "-C", folder, *words]).stdout
    return {line.removeprefix("?? ") for line in shown.splitlines()}


def test_a_label_rule(tmp_path):
    """In processes of its own, which have the rule, too."""
    processes.run([EXAMPLES / "label_rule.py", *quickly(tmp_path), "--jobs", "1"])
    found = cells(tmp_path, 14)
    recovered = {rule: found[rule, "recovery"] for rule in ("soft", "sharpened", "hard")}
    assert len({tuple(trials) for trials in recovered.values()}) == 3
    descriptions = tmp_path.glob("results/quick/runs/first-step-*/experiment.json")
    rules = [json.loads(path.read_text())["relabelling"]["rule"] for path in descriptions]
    assert sorted(rules) == ["hard", "sharpened", "soft"]


def test_a_loss(tmp_path):
    """In two processes, with the value that the losses of an untrained network have."""
    flags = "--noise-rates", "0.5", "--jobs", "2", "--threads", "1"
    processes.run([EXAMPLES / "loss.py", *quickly(tmp_path), *flags])
    found = cells(tmp_path, 16)
    assert found["gce", "last", "recovery", 0.5] != found["cross_entropy", "last", "recovery", 0.5]
    (log,) = tmp_path.glob("results/quick/runs/gce-sn50-s0-*/log.json")
    losses = [epoch["loss"] for epoch in json.loads(log.read_text())]
    assert losses[-1] < losses[0] < (1 - 0.1**0.7) / 0.7 + 0.1


def test_a_noise(tmp_path):
    script(EXAMPLES / "label_noise.py", *quickly(tmp_path))
    found = cells(tmp_path, 15)
    assert set(found) == {(name, "test") for name in ("cross entropy", "forward", "joint")}
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    assert len(results) == 4 and all("-nx30-" in result["id"] for result in results)
    for result in results:  # 36 images a class, of which ceil(0.3 * 36) have the next one's label
        assert result["noisy_labels_right"] == pytest.approx(1 - 11 / 36)


def test_a_source_of_labels(tmp_path):
    """All runs of a trial have the same labels."""
    script(EXAMPLES / "label_source.py", *quickly(tmp_path))
    assert set(cells(tmp_path, 17)) == {(n, "test") for n in ("cross_entropy", "forward", "joint")}
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    assert len(results) == 4 and all("-beginner-" in result["id"] for result in results)
    (right,) = {result["noisy_labels_right"] for result in results}
    assert 0.4 < right < 0.8


def test_a_data_set(tmp_path):
    script(EXAMPLES / "data_set.py", *quickly(tmp_path), "--noise-rates", "0.5")
    found = cells(tmp_path, 1)
    assert len([key for key in found if key[0] in ("cross_entropy", "joint")]) == 8
    bound = json.loads((tmp_path / "results/quick-photographs/data.json").read_text())
    assert bound["data"] == "photographs"


@needs_git
def test_a_program_without_presets_and_scheduler(tmp_path):
    """Its first epochs: all of it takes a minute or so."""
    source = (EXAMPLES / "train_digits.py").read_text()
    assert len(source.splitlines()) <= 56
    short = source.replace("epochs=70", "epochs=3").replace("epochs=42", "epochs=2")
    short = short.replace("first, 25, 70", "first, 2, 3")
    assert short.count("first, 2, 3") == short.count("epochs=3") == short.count("epochs=2") == 1
    (tmp_path / "short.py").write_text(short)
    processes.run([tmp_path / "short.py"], cwd=tmp_path)
    assert untracked(tmp_path) == {".gitignore", "short.py"}
    logs = [json.loads((tmp_path / f"result{n}" / "log").read_text()) for n in (1, 2)]
    assert [len(log) for log in logs] == [3, 2]
    assert logs[0][0]["recovery"] == pytest.approx(0.55, abs=0.03)  # not updated yet
    assert logs[0][-1]["recovery"] != logs[0][0]["recovery"]
    assert logs[0][-1]["accuracy/true"] > 0.15


def test_labels_and_weights_are_loaded_as_the_document_says(monkeypatch):
    """Weights that are committed predict what their run scored, and labels are as right."""
    monkeypatch.chdir(ROOT)
    page, names = (ROOT / "docs/load-results.md").read_text(), {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    last = names["packed"]["result"]["last"]
    predicted, test = names["scores"].argmax(axis=1), names["test"]
    assert (predicted == test.true_labels).mean() == pytest.approx(last["test"], abs=1e-9)
    assert (names["corrected"] == names["true"]).mean() == last["recovery"]
    assert (names["noisy"] == names["true"]).mean() == names["packed"]["log"][0]["recovery"]


def test_own_images_with_noisy_labels(tmp_path):
    """Continued where it stopped: finished runs are not repeated."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(("dark", "light")):
        (tmp_path / "set" / name).mkdir(parents=True)
        for i in range(80):
            true = k if i % 5 else 1 - k
            pixels = rng.integers(120 * true, 120 * true + 130, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{i}.png")
    script = EXAMPLES / "own_images.py"
    assert len(script.read_text().splitlines()) <= 64

    def own(*flags, code=0):
        short = ("--side", "8", "--epochs", "2", "--device", "cpu")
        done = processes.run([script, *short, *flags], code, cwd=tmp_path)
        return done.stderr.splitlines()[-1] if code else done.stdout

    flags = ("set", "--out", "own")
    own(*flags)
    results = {path: path.stat().st_mtime_ns for path in (tmp_path / "own").rglob("result.json")}
    rows = (tmp_path / "own/labels.csv").read_text().splitlines()
    (labels,) = (tmp_path / "own").glob("runs/first-step-real-*/labels.npz")
    soft = np.load(labels)["labels"]
    assert rows[0] == "path,label" and len(rows) == 1 + len(soft) == 1 + 2 * 72
    for row, y in zip(rows[1:], soft, strict=True):
        assert row.split(",")[1] == ("dark", "light")[y.argmax()]
        assert (tmp_path / "set" / row.split(",")[0]).is_file()
    (tmp_path / "own/labels.csv").unlink()
    own(*flags)
    assert (tmp_path / "own/labels.csv").read_text().splitlines() == rows and len(results) == 2
    assert all(path.stat().st_mtime_ns == time for path, time in results.items())
    # Neither labels of other data nor files of the user's are written over.
    table, mine = tmp_path / "set/labels.csv", tmp_path / "own/labels.csv"
    table.write_text("".join(f"{row}\n" for row in rows).replace("dark\n", "light\n", 9))
    mine.write_text("edited")
    own(*flags)
    other = "expected runs on the same data alone, or another folder for the results"
    for words, said in [
        ((table, "--out", "own"), other), ((*flags, "--side", "9"), other),
        ((table, "--out", "set"), "--out set: not empty, expected a new folder"),
        ((*flags, "--side", "0"), "--side: 0: expected a whole number of at least 1"),
        ((*flags, "--device", "gpu"), "--device gpu: expected auto, cpu, cuda or cuda:N"),
    ]:  # fmt: skip
        assert said in own(*words, code=2)
    assert mine.read_text() == "edited" and table.read_text().count("light") > 70
