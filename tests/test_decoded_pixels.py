"""Modes, compressions and orientations give the pixels that were written, or are refused."""

import io
import struct
import zlib
from functools import partial

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from chainer_jo.data import decoding
from chainer_jo.data.decoding import open_rgb
from chainer_jo.errors import UserError

H, W = 5, 11  # no multiple of 8, so that rows of single bits end within a byte
ORIENTATIONS = {  # where a picture's first row and column went when it was taken: how to turn it
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


def packed(samples, bits):
    """Rows of samples (h, n) as bytes: each row begins at a new one. uint8 (h, bytes)."""
    if bits == 16:
        return np.ascontiguousarray(samples.astype(">u2")).view(np.uint8)
    single = (samples[..., np.newaxis].astype(int) >> np.arange(bits)[::-1]) & 1
    return np.packbits(single.reshape(len(samples), -1).astype(np.uint8), axis=1)


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(samples, bits, colour_type, before=()):
    """A PNG of samples (h, w, channels); `before` are chunks, (kind, data), before the pixels."""
    height, width, _ = samples.shape
    rows = b"".join(b"\0" + row.tobytes() for row in packed(samples.reshape(height, -1), bits))
    head = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    chunks = [(b"IHDR", head), *before, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def exif(orientation):
    """EXIF data that have an orientation alone."""
    return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + bytes([0, orientation]) + bytes(6)


def draw(bits, channels=1):
    """Samples (H, W, channels) of all values up to the largest."""
    samples = np.random.default_rng(0).integers(1 << bits, size=(H, W, channels))
    samples[0, :2] = [[0], [(1 << bits) - 1]]
    return samples


def eight(samples, bits):
    """Samples of any number of bits as eight: black stays 0, white becomes 255."""
    return samples >> (bits - 8) if bits > 8 else samples * 255 // ((1 << bits) - 1)


def tiff(mode, tags=()):
    """A TIFF as Pillow writes it, with other numbers in some tags."""
    file = io.BytesIO()
    Image.new(mode, (W, H)).save(file, "TIFF", tiffinfo={284: 1, 339: 1} if mode != "F" else {})
    content = file.getvalue()
    for tag, value in dict(tags).items():
        at = content.index(struct.pack("<HH", tag, 3)) + 8
        content = content[:at] + struct.pack("<H", value) + content[at + 2 :]
    return content


def over_white(pixels):
    return pixels[..., :-1] * (pixels[..., -1:] / 255) + 255 - pixels[..., -1:]


def colours(bits):
    return np.random.default_rng(1).integers(1 << 16, size=(1 << min(bits, 8), 3))


def of_png(bits, kind, clear=False):
    """Function that writes a PNG in an orientation, the colours that a person sees, tolerance."""
    samples = draw(bits, {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind])
    palette = colours(bits) >> 8
    before = [(b"PLTE", palette.astype(np.uint8).tobytes())] if kind == 3 else []
    seen = palette[samples[..., 0]] if kind == 3 else eight(samples, bits)
    if kind in (4, 6):
        seen = over_white(seen.astype(float))
    if clear:
        colour = samples[0, 2]  # its number in a palette, or its samples
        seen = np.where((samples == colour).all(axis=2)[..., np.newaxis], 255, seen)
        tag = bytes([255] * int(colour[0]) + [0]) if kind == 3 else colour.astype(">u2").tobytes()
        before = [*before, (b"tRNS", tag)]

    def write(orientation):
        chunks = [*before, (b"eXIf", exif(orientation))]
        return png(samples, bits, kind, before=chunks)

    return write, seen, kind in (4, 6)


def of_pillow(kind, mode, at_most=0, turned=True, **options):
    """The same of Pillow's formats; a smooth picture, for compressions that lose something."""
    y, x = np.mgrid[0:24, 0:40]
    grey = (y * 5 + x * 3) % 256
    layers = np.dstack([grey, 240 - grey, y * 10, 255 - y * 10]).astype(np.uint8)
    image = Image.fromarray(layers) if mode == "RGBA" else Image.fromarray(layers[..., :3])
    image = Image.fromarray(layers[..., 0].astype("u2") * 257) if mode == "I;16" else image
    image = image.convert(mode)
    seen = np.asarray(image.convert("RGB")) if mode != "I;16" else layers[..., :1]
    seen = over_white(layers.astype(float)) if mode == "RGBA" else seen
    if options.get("transparency"):
        options["transparency"] = clear = image.getpixel((3, 0))
        seen = np.where((np.asarray(image) == clear)[..., np.newaxis], 255, seen)

    def write(orientation):
        file, exif = io.BytesIO(), Image.Exif()
        exif[274] = orientation
        image.save(file, kind, **options, **({"exif": exif} if turned else {}))
        return file.getvalue()

    return write, seen, at_most


SEEN = {
    **{f"TIFF {mode} {packing}": partial(of_pillow, "TIFF", mode, 1, compression=packing)
       for packing in (None, "tiff_deflate")
       for mode in ("1", "L", "I;16", "RGB", "RGBA", "P", "CMYK", "YCbCr", "LAB")},
    **{f"PNG {row}": partial(of_png, *row) for row in PngImagePlugin._MODES},
    **{f"PNG {row}, a colour is clear": partial(of_png, *row, clear=True)
       for row in PngImagePlugin._MODES if row[1] == 3 or (row[0] == 8 and row[1] < 4)},
    **{f"{kind} {mode} {more}": partial(of_pillow, kind, mode, at_most, kind[0] in "WJ", **more)
       for kind, mode, at_most, more in (
        ("WEBP", "L", 1, {"lossless": True}), ("WEBP", "RGB", 40, {"quality": 90}),
        ("WEBP", "RGBA", 1, {"lossless": True, "exact": True}),
        ("JPEG", "L", 50, {}), ("JPEG", "CMYK", 50, {}),
        ("JPEG", "RGB", 50, {"progressive": True, "subsampling": "4:2:0"}),
        ("BMP", "L", 0, {}), ("BMP", "P", 0, {}), ("GIF", "L", 0, {"interlace": True}),
        ("GIF", "P", 0, {"transparency": True}), ("GIF", "L", 0, {"transparency": True}),
    )},
}  # fmt: skip


@pytest.mark.parametrize("form", SEEN)
def test_colours_and_orientation_are_what_a_viewer_shows(form, tmp_path):
    """By the path, and from memory as a data set of small images reads it."""
    write, seen, at_most = SEEN[form]()
    turns = ORIENTATIONS if write(1) != write(2) else {1: ORIENTATIONS[1]}
    for orientation, turn in turns.items():
        expected, content = turn(np.asarray(seen, float)), write(orientation)
        (tmp_path / "image").write_bytes(content)
        pixels = np.asarray(open_rgb(tmp_path / "image"))
        assert pixels.shape == (*expected.shape[:2], 3), orientation
        assert np.abs(pixels - expected).max() <= at_most, orientation
        np.testing.assert_array_equal(decoding.read(content).convert("RGB"), pixels)


REFUSED = {
    "12 bits": (tiff("I;16", {258: 12}), "grey of 12 bits, or of 16 where white is 0"),
    "white is 0": (tiff("I;16", {262: 0}), "grey of 12 bits, or of 16 where white is 0"),
    "planes": (tiff("RGB", {284: 2}), "a TIFF in planes"),
    "6 bits": (tiff("L", {258: 6}), "a TIFF of bits or samples that are not read"),
    "a TIFF of 8 bytes": (b"MM\0+" + bytes(99), "a TIFF of bits or samples"),
    "nothing": (b"text", "content of another kind"),
    "half": (tiff("RGB")[:100], "cannot be decoded"),
    **{
        f"samples {mode}": (tiff(mode, tags), "signed, of 32 bits or floating-point")
        for mode, tags in (("I", {}), ("F", {}), ("I;16", {339: 2}))
    },
    **{
        f"a transparent colour of {bits} bits, {kind}": (
            png(draw(bits, channels), bits, kind, before=[(b"tRNS", b"\0\1" * channels)]),
            "a transparent colour of 2, 4 or 16 bits",
        )
        for bits, kind, channels in ((2, 0, 1), (4, 0, 1), (16, 0, 1), (16, 2, 3))
    },
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("form", REFUSED)
def test_forms_that_would_have_other_colours_are_refused(form, tmp_path):
    content, words = REFUSED[form]
    (tmp_path / "image").write_bytes(content)
    words = f"{words}.*expected .* of 8 or 16 unsigned bits"
    with pytest.raises(UserError, match=words) as caught:
        open_rgb(tmp_path / "image")
    assert "\n" not in str(caught.value)


def test_a_tiff_in_one_plane_and_a_png_with_a_large_profile_are_opened(tmp_path):
    profile = b"iCCP", b"x\0\0" + zlib.compress(bytes(20_000_000))
    for content in (tiff("L", {284: 2}), png(draw(8), 8, 0, before=[profile])):
        (tmp_path / "image").write_bytes(content)
        assert open_rgb(tmp_path / "image").size == (W, H)
