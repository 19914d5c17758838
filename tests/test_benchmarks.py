"""benchmarks/train_step.py: runs, compares, reports, and says what it left out."""

import json

import train_step
import workload

from chainer_jo.reproduction.experiments import presets


def test_the_network_is_the_papers():
    paper = presets.PAPER
    assert workload.NETWORKS["paper"] == (
        tuple(paper.network.units),
        tuple(paper.network.widths),
        tuple(paper.image_shape),
        paper.batch_size,
    )


def test_a_run(tmp_path, capsys):
    """Stock Chainer against this project without and with the engine, on the digits network."""
    path = tmp_path / "results" / "cpu.json"
    names = ["chainer", "chainer_jo/stock", "chainer_jo/fp32", "torch/fp32-nhwc"]
    arguments = ["--network", "digits", "--batch", "4", "--threads", "1", "--rounds", "1"]
    assert train_step.main([*arguments, "--profile", "--only", *names, "--json", str(path)]) == 0
    result = json.loads(path.read_text())
    measured = {entry["name"]: entry for entry in result["entries"]}
    assert set(measured) | set(result["missing"]) == set(names)
    for entry in measured.values():
        assert 0 < entry["fastest_s"] <= entry["median_s"] < 60 and entry["processor_s"] > 0
    text = capsys.readouterr().out
    assert all(name in text for name in names)
