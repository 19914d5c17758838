"""Decoding of image files: accepted formats, unusual modes, resize and crop (Section 5.2)."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np
from PIL import (
    ExifTags,
    Image,
    ImageFile,
    ImageOps,
    PngImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
)

from chainer_jo import files
from chainer_jo.errors import UserError, one_line

#: Accepted formats, by content, not name. Decoders of other formats are not safe: for PostScript,
#: Pillow starts a program.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
EXPECTED = f"expected a whole {', '.join(FORMATS[:-1])} or {FORMATS[-1]} of 8 or 16 unsigned bits"
#: Version of the decoder, part of the key of caches: increment it when pixels change.
VERSION = 2
_Tag = ExifTags.Base
_GREY = ("1", "L", "LA")
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
_NO_WHITE = ("I", "F")  # numbers of 32 bits
_UNSCALED = ("L;2", "L;4", "I;16B", "RGB;16B")  # PNGs whose transparent colour is not in 8 bits

# Pillow warns of images above 89 million pixels, and refuses images above 179 million. Warnings
# name no file and come from every decoding process; large images and bad EXIF data are harmless.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", "Corrupt EXIF data")
# Pillow's own reader of uncompressed TIFFs scrambles the pixels of those that are turned, or whose
# colours have a lower resolution, and does not know all orders of bits.
TiffImagePlugin.READ_LIBTIFF = True
# Pillow refuses PNGs with 64 MiB of text, and with 1 MiB in a compressed text or colour profile.
PngImagePlugin.MAX_TEXT_CHUNK = PngImagePlugin.MAX_TEXT_MEMORY


def read(
    source: str | Path | bytes, enough: int | None = None, size: int | None = None
) -> Image.Image:
    """Image of a file, or of its bytes, as a viewer shows it: "L" if grey and "RGB" otherwise.

    EXIF orientation is applied, transparent pixels become white, the upper 8 bits and the first
    frame are kept. With ``enough``, a large JPEG is decoded faster, at a fraction of its size with
    at least that many pixels a side; ``size`` is what the caller resizes it to, whose last column
    and row may be a part of a pixel there: such an image has that size already.

    Raises any exception of Pillow's for damaged files; ValueError for pixels without a known white,
    and for rare forms that Pillow decodes to other colours.
    """
    content = source if isinstance(source, bytes) else files.content(source)
    with _opened(content) as file:
        image: Image.Image = file
        tags = getattr(image, "tag_v2", {})  # of a TIFF
        if image.mode in _NO_WHITE or 2 in tags.get(_Tag.SampleFormat, ()):
            raise ValueError("pixels that are signed, of 32 bits or floating-point")
        if tags.get(_Tag.PlanarConfiguration) == 2 and tags.get(_Tag.SamplesPerPixel, 1) > 1:
            raise ValueError("a TIFF in planes")
        deep = image.mode in _SIXTEEN_BITS
        bits, black = tags.get(_Tag.BitsPerSample, (16,)), tags.get(_Tag.PhotometricInterpretation)
        if deep and (bits[0] != 16 or black == 0):
            raise ValueError("grey of 12 bits, or of 16 where white is 0")
        if "transparency" in image.info and file.tile[0][3] in _UNSCALED:
            raise ValueError("a transparent colour of 2, 4 or 16 bits")
        drafted = image.draft(None, (enough, enough)) if enough else None
        image.load()
        if drafted and size and drafted[1][2:] != image.size:
            image = image.resize((size, size), Image.Resampling.BILINEAR, drafted[1])
        with contextlib.suppress(Exception):  # damaged EXIF data
            ImageOps.exif_transpose(image, in_place=True)
        if deep:
            return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        mode = "L" if image.mode in _GREY else "RGB"
        if image.has_transparency_data:
            # Pillow converts La to no other mode than LA.
            layer = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
            white = Image.new("RGBA", image.size, "white")
            return Image.alpha_composite(white, layer).convert(mode)
        return image.convert(mode)


def _opened(content: bytes) -> ImageFile.ImageFile:
    try:
        return Image.open(io.BytesIO(content), formats=FORMATS)
    except UnidentifiedImageError:
        if content[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
            raise ValueError("a TIFF of bits or samples that are not read") from None
        raise


def open_rgb(path: str | Path) -> Image.Image:
    """Image of a file in RGB; see `read`.

    Raises UserError for a file that is missing, truncated or no image.
    """
    try:
        return read(path).convert("RGB")
    except Exception as error:
        raise UserError(
            f"image {str(path)!r}: cannot be decoded ({reason(error)}), {EXPECTED}"
        ) from None


def attempt(source: str | bytes, size: int, enough: int | None = None) -> np.ndarray | str:
    """RGB image resized to `size` x `size` pixels, uint8 (size, size, 3), see `read`; or the reason
    why it cannot be decoded."""
    try:
        image = read(source, enough, size).convert("RGB")
    except Exception as error:  # a damaged file can raise anything
        return reason(error)
    return np.asarray(image.resize((size, size), Image.Resampling.BILINEAR))


def reason(error: Exception) -> str:
    """A decoder's error message, in one line."""
    if isinstance(error, UnidentifiedImageError):  # its message names Python objects
        return "content of another kind"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return one_line(error)


def decode(path: str | Path, resize: int = 256, crop: int = 224) -> np.ndarray:
    """Centre of an image in RGB, resized to `resize` x `resize` (antialiased): uint8 (crop, crop,
    3); see `open_rgb`."""
    image, first = open_rgb(path), (resize - crop) // 2
    if image.size != (resize, resize):
        image = image.resize((resize, resize), Image.Resampling.BILINEAR)
    return np.asarray(image)[first : first + crop, first : first + crop]
