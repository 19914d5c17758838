"""Image files of all kinds: which are opened, and what is seen of odd ones."""

import sys

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image
from processes import run

from chainer_jo.data.decoding import attempt, decode
from chainer_jo.errors import UserError

POSTSCRIPT = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


def test_resized_by_means_and_cut_to_the_centre(tmp_path):
    pixels = np.zeros((100, 60, 3), np.uint8)
    pixels[40:60, 20:40] = 255  # the middle, whatever the shape
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = decode(tmp_path / "a.png", resize=30, crop=10)
    assert image.shape == (10, 10, 3) and image.dtype == np.uint8
    assert image[3:-3, 2:-2].min() > 200
    whole = decode(tmp_path / "a.png", resize=30, crop=30)
    np.testing.assert_array_equal(image, whole[10:20, 10:20])
    pixels[:, ::2], pixels[:, 1::2] = 200, 0  # of a smaller image they are means
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert abs(decode(tmp_path / "a.png", resize=10, crop=10).astype(int) - 100).max() < 9


def striped(height, width, mode="RGB"):
    """Left half dark, right half bright."""
    pixels = np.full((height, width), 40, np.uint8)
    pixels[:, width // 2 :] = 200
    return Image.fromarray(pixels).convert(mode)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_the_edges_of_a_large_jpeg_weigh_the_same(mode, orientation, tmp_path):
    """Decoded at half its size, the last column is half a pixel."""
    framed = np.zeros((385, 385, 3), np.uint8)
    framed[1:-1, 1:-1] = 255
    exif = Image.Exif()
    exif[274] = orientation
    image = Image.fromarray(framed).convert(mode)
    image.save(tmp_path / "a.jpg", quality=95, subsampling=0, exif=exif)
    pixels = attempt(str(tmp_path / "a.jpg"), 96, 192).astype(int)
    for line in (pixels[48], pixels[:, 48]):
        assert abs(line[0] - line[-1]).max() < 25


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_data_are_ignored(tmp_path):
    striped(20, 20).save(tmp_path / "a.jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff\x12\x01")
    assert abs(decode(tmp_path / "a.jpg", 20, 20)[:, :9].astype(int) - 40).max() < 12


def test_of_an_animation_the_first_picture_is_taken(tmp_path):
    still, moved = striped(8, 8), striped(8, 8).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for name in ("a.gif", "a.webp", "a.tiff"):
        still.save(tmp_path / name, save_all=True, append_images=[moved])
        assert abs(decode(tmp_path / name, 8, 8)[:, :3].astype(int) - 40).max() < 12


def test_postscript_is_not_run(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *args: started.append(args))
    (tmp_path / "a.jpg").write_text(POSTSCRIPT)
    with pytest.raises(UserError, match="a.jpg.*content of another kind"):
        decode(tmp_path / "a.jpg")
    assert not started


def test_a_large_photograph_is_opened_without_a_warning(tmp_path):
    """In a process of its own, where the tests' own rules for warnings do not hold."""
    path = tmp_path / "large.png"
    Image.new("L", (40, 40), 77).save(path)
    code = (
        "import sys; from PIL import Image; from chainer_jo.data.decoding import decode; "
        "Image.MAX_IMAGE_PIXELS = 40 * 40 - 1; print(*decode(sys.argv[1], 8, 8)[3, 3])"
    )
    done = run([sys.executable, "-W", "error", "-c", code, path])
    assert (done.stdout, done.stderr) == ("77 77 77\n", "")
