"""Archives of arrays that somebody else has made: features, weights and networks."""

import json
import zipfile

import numpy as np
import pytest
from chainer import serializers
from own_images import one_line, run

from chainer_jo import files
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.method.pseudo_labels import read_features
from chainer_jo.method.resnet50 import load_resnet50
from chainer_jo.relabel.estimate.features import FeatureNetwork
from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.relabel.read.feature_table import read_arrays
from chainer_jo.relabel.write import network_file

DOORS = {
    "features": lambda path: read_arrays(path, "features"),
    "pseudo labels": lambda path: read_features(path, digits.load()),
    "weights": load_resnet50,
    "network": lambda path: network_file.load(path.parent),
}


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def member(content):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("features.npy", content)

    return write


def array(dtype):
    return lambda path: np.savez(path, features=np.zeros(3, dtype))


HOSTILE = {
    "bytes": (member(b"plain"), "(?i)magic string|eof"),
    "many brackets": (member(header("[" * 10_000)), "(?i)header|EOF|parentheses"),
    "a number twice as long": (array("longdouble"), "is float"),
    "complex numbers": (array("c8"), "'features' is complex64"),
    "dates": (array("M8[D]"), "'features' is datetime64"),
    "records": (array("i4,i4"), "'features' is .*'f0'"),
    "objects": (array(object), "Object arrays cannot be loaded"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_archive_of_something_else_is_refused(kind, tmp_path):
    write, words = HOSTILE[kind]
    write(tmp_path / "f.npz")
    with pytest.raises(Exception, match=words):
        files.arrays(tmp_path / "f.npz")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["bytes", "many brackets", "dates"])
def test_every_door_refuses_it_in_one_line(kind, door, tmp_path):
    write, words = HOSTILE[kind]
    write(tmp_path / "model.npz")
    with pytest.raises(UserError, match=words) as caught:
        DOORS[door](tmp_path / "model.npz")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_other_arrays_beside_features_are_not_read(tmp_path):
    np.savez(tmp_path / "f.npz", features=np.ones((1, 2)), paths=["a"], model=np.array(None))
    assert read_arrays(tmp_path / "f.npz", "features")[1] == ["a"]


ABOUT = {"classes": ["a", "b"], "features": 12, "hidden": 4, "seen": {"by": "pixels", "side": 2}}
LOOK = {"mean": np.zeros(12, "f4"), "scale": np.ones((), "f4")}


@pytest.mark.parametrize(
    "about, look",
    [
        *(({"seen": seen}, {}) for seen in (
            {"by": "builtin", "side": 1_000_000}, {"by": "builtin", "side": 96}, {"by": "x"},
            {"by": "pixels", "side": 3}, {"by": "pixels", "side": 2.0}, {"by": ["pixels"]}, {}, "",
        )),
        *(({"features": features}, {}) for features in (11, 0, -1, 12.0, True, None, "12", 10**30)),
        *(({"hidden": hidden}, {}) for hidden in (10**6, 3, 0, -4, 4.0, None, [4])),
        *(({"classes": classes}, {}) for classes in (
            [], "ab", {"a": 0, "b": 1}, ["a"], ["a", 2], ["a", "\ud800"], ["a"] * 10**6, None,
        )),
        *(({}, {"mean": mean}) for mean in (np.zeros(11), np.zeros((5, 1, 12)), ["x"] * 12)),
        *(({}, {"scale": scale}) for scale in (np.ones(3), np.zeros(()), np.nan, "x")),
    ],
)  # fmt: skip
def test_a_network_of_others_is_checked_before_it_is_built(about, look, tmp_path):
    weights = serializers.npz.serialize(FeatureNetwork(12, 2, 4))
    network_file.save(TrainedNetwork(ABOUT, weights, LOOK), tmp_path)
    assert network_file.load(tmp_path).of_features(np.zeros((3, 12), "f4")).shape == (3, 2)
    arrays = dict(np.load(tmp_path / "model.npz"))
    arrays |= {f"normalisation/{name}": value for name, value in look.items()}
    np.savez(tmp_path / "model.npz", **arrays | {"about": json.dumps(ABOUT | about)})
    with pytest.raises(UserError, match="damaged .* expected the folder"):
        network_file.load(tmp_path)


@pytest.mark.parametrize("name, value", [
    ("dense/b", np.ones(1, "f4")), ("bn/gamma", np.full(4, np.nan, "f4")), ("bn/beta", ["x"] * 4),
    ("more", np.ones(4, "f4")), ("dense/W", np.full((2, 4), 3e38, "f4")),
])  # fmt: skip
def test_weights_have_the_shapes_of_the_network_and_finite_numbers(name, value, tmp_path, capsys):
    """Too large ones are noticed when they overflow."""
    np.random.seed(0)  # of the initial weights, with some of which nothing overflows
    weights = serializers.npz.serialize(FeatureNetwork(12, 2, 4)) | {name: value}
    network_file.save(TrainedNetwork(ABOUT | {"seen": None}, weights, LOOK), tmp_path)
    np.savez(tmp_path / "f.npz", features=np.random.rand(9, 12), paths=list("abcdefghi"))
    assert run("predict", tmp_path, "--features", tmp_path / "f.npz") == 2
    said = "NaN, expected smaller" if name == "dense/W" else f"model.npz: damaged (array '{name}'"
    assert said in one_line(capsys)


@pytest.mark.parametrize("text", ["[]", "7", "null", '{"classes": ["a"]}', "{"])
def test_a_network_without_a_description_is_one_line(text, tmp_path):
    np.savez(tmp_path / "model.npz", **{"about": text, "weights/W": np.ones(1)})
    with pytest.raises(UserError, match="damaged .* expected the folder"):
        network_file.load(tmp_path)
