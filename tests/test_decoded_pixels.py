"""Every mode, compression and orientation that Pillow opens gives the pixels that were written."""

import io
import zlib
from itertools import product

import image_bytes
import numpy as np
import pytest
from image_bytes import ORIENTATIONS, bmp, png, tiff
from PIL import Image, PngImagePlugin, TiffImagePlugin

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


NO_WHITE = "signed, of 32 bits or floating-point.*expected .* of 8 or 16 unsigned bits"
GREY_INVERTED, GREY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
COLOURS = {GREY_INVERTED: 1, GREY: 1, RGB: 3, PALETTE: 1, CMYK: 4, YCBCR: 3, LAB: 3}


def of_tiff(samples, bits, photometric, extra, palette):
    """What a person sees, and how far Pillow's arithmetic may be off."""
    n, channels = COLOURS[photometric], samples.shape[2]
    colours, rest = eight(samples, bits).astype(float)[..., :n], eight(samples, bits)[..., n:]
    at_most = 0
    if photometric == GREY_INVERTED:
        colours = 255 - colours
    elif photometric == PALETTE:
        colours = palette[samples[..., 0]] >> 8
    elif photometric == CMYK:
        colours, at_most = (255 - colours[..., :3]) * (255 - colours[..., 3:]) / 255, 1
    elif photometric in (YCBCR, LAB):
        modes = {YCBCR: "YCbCr", LAB: "LAB"}
        image = Image.frombytes(modes[photometric], (W, H), colours.astype(np.uint8).tobytes())
        colours, at_most = np.asarray(image.convert("RGB")), 1
    if extra[:1] in ((1,), (2,), (999,)) or (photometric, channels, extra) == (RGB, 4, ()):
        alpha = rest[..., :1]
        colours = colours + 255 - alpha if extra[:1] == (1,) else over_white(colours, alpha)
        at_most = max(1, at_most)
    return colours, at_most


# All that Pillow knows, but for the one channel of YCbCr, which no file has alone.
KEYS = [key for key in TiffImagePlugin.OPEN_INFO if not (key[1] == YCBCR and len(key[4]) == 1)]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: "-".join(map(str, key)))
def test_tiff(key, tmp_path):
    prefix, photometric, (sample_format,), fill_order, bits_of_all, extra = key
    order, bits = {b"II": "<", b"MM": ">"}[prefix], bits_of_all[0]
    channels = len(bits_of_all)
    palette = np.random.default_rng(1).integers(1 << 16, size=(1 << min(bits, 8), 3))
    samples = draw(bits, channels)
    if extra[:1] == (1,):  # premultiplied: no colour above its alpha
        n = COLOURS[photometric]
        samples[..., :n] = samples[..., :n] * samples[..., n : n + 1] // ((1 << bits) - 1)
    more = ((530, "H", [1, 1]),) if photometric == YCBCR else ()
    form = dict(
        order=order, photometric=photometric, fill_order=fill_order, extra=extra,
        sample_format=sample_format, colours=palette if photometric == PALETTE else None,
        more=more,
    )  # fmt: skip
    unsigned = sample_format == 1 and bits <= 16
    expected, at_most = of_tiff(samples, bits, photometric, extra, palette)
    for (orientation, turn), deflate in product(ORIENTATIONS.items(), (False, True)):
        rows = 2 if orientation in (1, 3, 6) else None
        turned = dict(orientation=orientation, deflate=deflate, rows_per_strip=rows)
        content = tiff(samples, bits, **turned, **form)
        if unsigned:
            check(tmp_path, content, turn(expected), at_most, f"{orientation=}, {deflate=}")
        else:
            refuse(tmp_path, content, NO_WHITE)


def test_tiff_in_planes(tmp_path):
    samples = draw(8, 3)
    for orientation, turn in ORIENTATIONS.items():
        content = tiff(samples, 8, photometric=RGB, planar=True, orientation=orientation)
        check(tmp_path, content, turn(samples), hint=orientation)


def test_uncompressed_tiff_with_fewer_colours_than_pixels(tmp_path):
    """YCbCr as cameras have it: a block of four brightnesses has one blue and one red."""
    blocks = draw(8, 6)[:4, :8]
    blocks[..., 4:] = 96 + blocks[..., 4:] // 4
    bright = blocks[..., :4].reshape(4, 8, 2, 2).swapaxes(1, 2).reshape(8, 16)
    blue, red = (blocks[..., i].repeat(2, axis=0).repeat(2, axis=1) for i in (4, 5))
    colours = np.dstack([bright, blue, red]).astype(np.uint8)
    expected = np.asarray(Image.fromarray(colours, "YCbCr").convert("RGB"))
    content = bytearray(tiff(colours, 8, photometric=YCBCR, more=((530, "H", [2, 2]),)))
    content[8 : 8 + blocks.size] = blocks.astype(np.uint8).tobytes()
    check(tmp_path, bytes(content), expected, 1)


@pytest.mark.filterwarnings("ignore:(Corrupt EXIF|Tag) data:UserWarning")
@pytest.mark.parametrize("deflate", [False, True])
def test_truncated_tiff(tmp_path, deflate):
    content = tiff(draw(8, 3), 8, photometric=RGB, deflate=deflate)
    start = int.from_bytes(content[4:8], "little")
    moved = (start - 100).to_bytes(4, "little")
    refuse(tmp_path, content[:start], "cannot be decoded")
    refuse(tmp_path, content[:4] + moved + content[8:], "cannot be decoded")


COMPRESSIONS = {  # what each can hold
    None: ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "I;16", "I;16B"),
    "tiff_ccitt": ("1",),
    "group3": ("1",),
    "group4": ("1",),
    **dict.fromkeys(
        ("tiff_lzw", "tiff_adobe_deflate", "packbits", "tiff_deflate", "zstd", "lzma"),
        ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "I;16", "I;16B"),
    ),
    "jpeg": ("L", "RGB", "CMYK"),
}


def picture(mode):
    """An image of a mode, and what is to be seen; smooth, for compressions that lose something."""
    y, x = np.mgrid[0:24, 0:40]
    grey = ((y * 5 + x * 3) % 256).astype(np.uint8)
    rgb = np.dstack([grey, 240 - grey, y * 10]).astype(np.uint8)
    alpha = (255 - y * 10).astype(np.uint8)
    if mode == "1":
        return Image.fromarray(grey > 90), np.where(grey > 90, 255, 0)[..., np.newaxis]
    if mode.startswith("I;16"):
        deep = grey.astype(f"{'>' if mode == 'I;16B' else '<'}u2") * 257
        return Image.fromarray(deep), grey[..., np.newaxis]
    if mode == "L":
        return Image.fromarray(grey), grey[..., np.newaxis]
    if mode == "LA":
        image = Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha)])
        return image, over_white(grey.astype(float), alpha)[..., np.newaxis]
    if mode == "RGBA":
        image = Image.fromarray(np.dstack([rgb, alpha]))
        return image, over_white(rgb.astype(float), alpha[..., np.newaxis])
    image = Image.fromarray(rgb).convert(mode)
    return image, np.asarray(image.convert("RGB"))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "compression, mode", [(name, mode) for name, modes in COMPRESSIONS.items() for mode in modes]
)
def test_tiff_of_all_compressions(compression, mode, tmp_path):
    image, expected = picture(mode)
    for orientation, turn in ORIENTATIONS.items():
        more = {"tiffinfo": {274: orientation}, "compression": compression, "strip_size": 200}
        try:
            content = saved(image, "TIFF", **more)
        except (OSError, RuntimeError) as error:  # a library without it
            pytest.skip(f"{compression}: {error}")
        at_most = 12 if compression == "jpeg" else 1
        check(tmp_path, content, turn(expected), at_most, orientation)


PNG_COLOURS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("bits, kind", PngImagePlugin._MODES)
def test_png(bits, kind, interlaced, tmp_path):
    """All numbers of bits and kinds of colours, turned and not, with a transparent colour."""
    samples = draw(bits, PNG_COLOURS[kind])
    palette = np.random.default_rng(1).integers(256, size=(1 << min(bits, 8), 3))
    before = [(b"PLTE", palette.astype(np.uint8).tobytes())] if kind == 3 else []
    seen = palette[samples[..., 0]] if kind == 3 else eight(samples, bits)
    if kind in (4, 6):
        seen = over_white(seen[..., :-1].astype(float), seen[..., -1:])
    at_most = 1 if kind in (4, 6) else 0
    for orientation, turn in ORIENTATIONS.items():
        chunks = [*before, (b"eXIf", image_bytes.exif(orientation))]
        content = png(samples, bits, kind, interlaced=interlaced, before=chunks)
        check(tmp_path, content, turn(seen), at_most, orientation)
    if kind in (4, 6):
        return
    clear = samples[0, 2]  # its number in a palette, or its samples
    chosen = (samples == clear).all(axis=2)
    content = bytes([255] * int(clear[0]) + [0]) if kind == 3 else clear.astype(">u2").tobytes()
    content = png(samples, bits, kind, interlaced=interlaced, before=[*before, (b"tRNS", content)])
    check(tmp_path, content, np.where(chosen[..., np.newaxis], 255, seen), 0, "transparent")


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_bmp(mode, tmp_path):
    image, expected = picture(mode)
    check(tmp_path, saved(image, "BMP"), expected)


@pytest.mark.parametrize("top_down", [False, True])
@pytest.mark.parametrize("bits, masks", [
    (16, (0x7C00, 0x3E0, 0x1F)), (16, (0xF800, 0x7E0, 0x1F)), (32, (0xFF0000, 0xFF00, 0xFF)),
    (32, (0xFF000000, 0xFF0000, 0xFF00)),
])  # fmt: skip
def test_bmp_with_masks(bits, masks, top_down, tmp_path):
    whole = draw(bits)
    shift = [(mask & -mask).bit_length() - 1 for mask in masks]
    channels = [
        eight((whole & mask) >> k, (mask >> k).bit_length())
        for mask, k in zip(masks, shift, strict=True)
    ]
    check(tmp_path, bmp(whole, bits, masks=masks, top_down=top_down), np.dstack(channels), 1)


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_bmp_with_a_palette(bits, tmp_path):
    samples = draw(bits)
    palette = np.random.default_rng(1).integers(256, size=(1 << bits, 3))
    content = bmp(samples, bits, colours=[tuple(map(int, c)) for c in palette])
    check(tmp_path, content, palette[samples[..., 0]])


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_gif(mode, interlaced, tmp_path):
    image, expected = picture(mode)
    check(tmp_path, saved(image, "GIF", interlace=interlaced), expected)
    clear = image.convert("L" if mode == "1" else mode).getpixel((3, 0))
    content = saved(image.convert("L") if mode == "1" else image, "GIF", transparency=clear)
    chosen = np.asarray(image.convert("L") if mode == "1" else image) == clear
    check(tmp_path, content, np.where(chosen[..., np.newaxis], 255, expected))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_webp(mode, tmp_path):
    image, expected = picture(mode)
    for orientation, turn in ORIENTATIONS.items():
        exif = Image.Exif()
        exif[274] = orientation
        for lossless in (True, False):
            content = saved(image, "WEBP", exif=exif, lossless=lossless, exact=True, quality=90)
            check(tmp_path, content, turn(expected), 1 if lossless else 40, (orientation, lossless))


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg(mode, progressive, subsampling, tmp_path):
    image, expected = picture(mode)
    for orientation, turn in ORIENTATIONS.items():
        exif = Image.Exif()
        exif[274] = orientation
        more = {"progressive": progressive, "subsampling": subsampling, "quality": 95}
        check(tmp_path, saved(image, "JPEG", exif=exif, **more), turn(expected), 50, orientation)


def text_chunks(size):
    packed = zlib.compress(b"y" * size)
    return {
        "zTXt": (b"zTXt", b"x\0\0" + packed),
        "iTXt": (b"iTXt", b"x\0\1\0\0\0" + packed),
        "iCCP": (b"iCCP", b"x\0\0" + packed),
        "tEXt": (b"tEXt", b"x\0" + b"y" * size),
    }


@pytest.mark.parametrize("name", text_chunks(0))
def test_a_png_with_much_text_or_a_large_profile_is_opened(name, tmp_path):
    samples = draw(8, 3)
    check(tmp_path, png(samples, 8, 2, before=[text_chunks(20_000_000)[name]]), samples)


@pytest.mark.parametrize("name", text_chunks(0))
def test_text_and_profiles_of_a_png_do_not_fill_the_memory(name, tmp_path):
    content = png(draw(8, 3), 8, 2, before=[text_chunks(100_000_000)[name]])
    if name == "tEXt":  # as long as its file
        content = png(draw(8, 3), 8, 2, before=[text_chunks(50_000_000)[name]] * 2)
    refuse(tmp_path, content, "Decompressed data too large|Too much memory used in text")
