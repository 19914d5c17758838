"""Modes, compressions and orientations give the pixels that were written, or are refused."""

import io
import zlib

import image_bytes
import numpy as np
import pytest
from image_bytes import ORIENTATIONS, png, tiff
from PIL import Image, PngImagePlugin

from chainer_jo.data import decoding
from chainer_jo.data.decoding import open_rgb
from chainer_jo.errors import UserError

H, W = 5, 11  # no multiple of 8, so that rows of single bits end within a byte


def draw(bits, channels=1, seed=0):
    """Samples (H, W, channels) of all values up to the largest."""
    samples = np.random.default_rng(seed).integers(1 << bits, size=(H, W, channels))
    samples[0, :2] = [[0], [(1 << bits) - 1]]
    return samples


def eight(samples, bits):
    """Samples of any number of bits as eight: black stays 0, white becomes 255."""
    if bits > 8:
        return samples >> (bits - 8)
    return samples * 255 // ((1 << bits) - 1)


def over_white(pixels, alpha):
    return pixels * (alpha / 255) + 255 - alpha


def check(tmp_path, content, expected, at_most=0, hint=""):
    """By its path, from memory, and as a data set of small images reads it."""
    path = tmp_path / "image"
    path.write_bytes(content)
    pixels = np.asarray(open_rgb(path))
    expected = np.broadcast_to(expected, (*expected.shape[:2], 3))
    assert pixels.shape == expected.shape, hint
    assert np.abs(pixels.astype(float) - expected).max() <= at_most, hint
    with io.BytesIO(content) as file:
        np.testing.assert_array_equal(decoding.read(file).convert("RGB"), pixels)


def refuse(tmp_path, content, words):
    (tmp_path / "image").write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        open_rgb(tmp_path / "image")
    assert "\n" not in str(caught.value)


GREY_INVERTED, GREY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
#: Meanings of a channel that is no colour, and its tag.
PREMULTIPLIED, ALPHA, EXTRA = 1, 2, 338


def of_tiff(samples, bits, photometric, extra, palette):
    """The colours that a person sees."""
    colours = eight(samples, bits).astype(float)
    if extra:
        colours, alpha = colours[..., :-1], colours[..., -1:]
        return colours + 255 - alpha if extra == PREMULTIPLIED else over_white(colours, alpha)
    if photometric == GREY_INVERTED:
        return 255 - colours
    if photometric == PALETTE:
        return palette[samples[..., 0]] >> 8
    if photometric == CMYK:
        return (255 - colours[..., :3]) * (255 - colours[..., 3:]) / 255
    if photometric in (YCBCR, LAB):
        mode = {YCBCR: "YCbCr", LAB: "LAB"}[photometric]
        image = Image.frombytes(mode, (W, H), colours.astype(np.uint8).tobytes())
        return np.asarray(image.convert("RGB"))
    return colours


@pytest.mark.parametrize("photometric, bits, channels, extra", [
    (GREY, 1, 1, 0), (GREY, 8, 1, 0), (GREY, 16, 1, 0), (GREY, 8, 2, ALPHA), (RGB, 8, 3, 0),
    (GREY_INVERTED, 8, 1, 0), (RGB, 16, 3, 0), (RGB, 8, 4, PREMULTIPLIED), (RGB, 16, 4, ALPHA),
    (PALETTE, 4, 1, 0), (CMYK, 8, 4, 0), (YCBCR, 8, 3, 0), (LAB, 8, 3, 0),
])  # fmt: skip
def test_tiff(photometric, bits, channels, extra, tmp_path):
    """In both orders of bytes, compressed and not, in all orientations."""
    palette = np.random.default_rng(1).integers(1 << 16, size=(1 << min(bits, 8), 3))
    samples = draw(bits, channels)
    if extra == PREMULTIPLIED:  # no colour above its alpha
        samples[..., :3] = samples[..., :3] * samples[..., 3:] // 255
    more = {EXTRA: ("H", [extra])} if extra else {}
    if photometric == PALETTE:
        more = {320: ("H", palette.T.ravel().tolist())}
    elif photometric == YCBCR:
        more = {530: ("H", [1, 1])}
    expected = of_tiff(samples, bits, photometric, extra, palette)
    for orientation, turn in ORIENTATIONS.items():
        form = dict(orientation=orientation, order="<>"[orientation in (1, 4, 6, 7)], more=more)
        content = tiff(samples, bits, photometric=photometric, deflate=orientation % 2, **form)
        check(tmp_path, content, turn(expected), 1, orientation)


PLANES = {284: ("H", [2])}
RARE = {
    "12 bits": (tiff(draw(12), 12), "grey of 12 bits, or of 16 where white is 0"),
    "white is 0": (tiff(draw(16), 16, photometric=GREY_INVERTED), "grey of 12 bits, or of 16"),
    "planes": (tiff(draw(8, 3), 8, photometric=RGB, more=PLANES), "a TIFF in planes"),
    "planes of grey": (
        tiff(draw(8, 2), 8, more=PLANES | {EXTRA: ("H", [ALPHA])}), "a TIFF in planes"
    ),
    "6 bits": (tiff(draw(6), 6), "a TIFF of bits or samples that are not read"),
    "a TIFF of 8 bytes": (b"MM\0+" + bytes(99), "a TIFF of bits or samples"),
    "nothing": (b"text", "content of another kind"),
    **{
        f"format {form}, {bits} bits": (
            tiff(draw(16), bits, more={339: ("H", [form])}), "signed, of 32 bits or floating-point"
        )
        for form, bits in ((1, 32), (2, 16), (2, 32), (3, 32))
    },
    **{
        f"a transparent colour of {bits} bits, {kind}": (
            png(draw(bits, channels), bits, kind, before=[(b"tRNS", b"\0\1" * channels)]),
            "a transparent colour of 2, 4 or 16 bits",
        )
        for bits, kind, channels in ((2, 0, 1), (4, 0, 1), (16, 0, 1), (16, 2, 3))
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", RARE)
def test_what_would_have_other_colours_is_refused(kind, tmp_path):
    content, words = RARE[kind]
    refuse(tmp_path, content, f"{words}.*expected .* of 8 or 16 unsigned bits")


def test_a_tiff_in_one_plane_is_opened(tmp_path):
    check(tmp_path, tiff(samples := draw(8), 8, more=PLANES), samples)


@pytest.mark.filterwarnings("ignore:(Corrupt EXIF|Tag) data:UserWarning")
def test_truncated_tiff(tmp_path):
    content = tiff(draw(8, 3), 8, photometric=RGB)
    refuse(tmp_path, content[: int.from_bytes(content[4:8], "little")], "cannot be decoded")


def picture(mode):
    """An image of a mode, and what is to be seen; smooth, for compressions that lose something."""
    y, x = np.mgrid[0:24, 0:40]
    grey = ((y * 5 + x * 3) % 256).astype(np.uint8)
    rgb = np.dstack([grey, 240 - grey, y * 10]).astype(np.uint8)
    alpha = (255 - y * 10).astype(np.uint8)
    if mode == "L":
        return Image.fromarray(grey), grey[..., np.newaxis]
    if mode == "RGBA":
        image = Image.fromarray(np.dstack([rgb, alpha]))
        return image, over_white(rgb.astype(float), alpha[..., np.newaxis])
    image = Image.fromarray(rgb).convert(mode)
    return image, np.asarray(image.convert("RGB"))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


PNG_COLOURS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


@pytest.mark.parametrize("bits, kind", PngImagePlugin._MODES)
def test_png(bits, kind, tmp_path):
    """All numbers of bits and kinds of colours, turned and not, with a transparent colour."""
    samples = draw(bits, PNG_COLOURS[kind])
    palette = np.random.default_rng(1).integers(256, size=(1 << min(bits, 8), 3))
    before = [(b"PLTE", palette.astype(np.uint8).tobytes())] if kind == 3 else []
    seen = palette[samples[..., 0]] if kind == 3 else eight(samples, bits)
    if kind in (4, 6):
        seen = over_white(seen[..., :-1].astype(float), seen[..., -1:])
    for orientation, turn in ORIENTATIONS.items():
        chunks = [*before, (b"eXIf", image_bytes.exif(orientation))]
        content = png(samples, bits, kind, before=chunks)
        check(tmp_path, content, turn(seen), kind in (4, 6), orientation)
    if kind == 3 or (bits == 8 and kind < 4):
        clear = samples[0, 2]  # its number in a palette, or its samples
        chosen = (samples == clear).all(axis=2)[..., np.newaxis]
        tag = bytes([255] * int(clear[0]) + [0]) if kind == 3 else clear.astype(">u2").tobytes()
        content = png(samples, bits, kind, before=[*before, (b"tRNS", tag)])
        check(tmp_path, content, np.where(chosen, 255, seen))


@pytest.mark.parametrize("mode", ["L", "P"])
def test_gif_and_bmp(mode, tmp_path):
    image, expected = picture(mode)
    check(tmp_path, saved(image, "BMP"), expected)
    check(tmp_path, saved(image, "GIF", interlace=True), expected)
    clear = image.getpixel((3, 0))
    chosen = (np.asarray(image) == clear)[..., np.newaxis]
    content = saved(image, "GIF", transparency=clear)
    check(tmp_path, content, np.where(chosen, 255, expected))


@pytest.mark.parametrize("kind, mode, at_most, options", [
    ("WEBP", "L", 1, {"lossless": True}), ("WEBP", "RGBA", 1, {"lossless": True, "exact": True}),
    ("WEBP", "RGB", 40, {"quality": 90}), ("JPEG", "L", 50, {}), ("JPEG", "CMYK", 50, {}),
    ("JPEG", "RGB", 50, {"progressive": True, "subsampling": "4:2:0"}),
])  # fmt: skip
def test_webp_and_jpeg(kind, mode, at_most, options, tmp_path):
    image, expected = picture(mode)
    for orientation, turn in ORIENTATIONS.items():
        exif = Image.Exif()
        exif[274] = orientation
        content = saved(image, kind, exif=exif, **options)
        check(tmp_path, content, turn(expected), at_most, orientation)


#: Chunks of a PNG that may be long, and how each begins.
TEXT = {"zTXt": b"x\0\0", "iTXt": b"x\0\1\0\0\0", "iCCP": b"x\0\0", "tEXt": b"x\0"}


@pytest.mark.parametrize("name", TEXT)
def test_text_and_profiles_of_a_png_do_not_fill_the_memory(name, tmp_path):
    """20 MB are opened, 100 MB, as long as the file where they are not compressed, are refused."""
    samples, packed = draw(8, 3), bytes if name == "tEXt" else lambda n: zlib.compress(bytes(n), 1)

    def chunks(size):
        return [(name.encode(), TEXT[name] + packed(size))]

    check(tmp_path, png(samples, 8, 2, before=chunks(20_000_000)), samples)
    large = chunks(50_000_000) * 2 if name == "tEXt" else chunks(100_000_000)
    content = png(samples, 8, 2, before=large)
    refuse(tmp_path, content, "Decompressed data too large|Too much memory used in text")
