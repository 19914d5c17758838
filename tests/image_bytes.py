"""Image files written from samples by their formats' rules, in every form that Pillow can open."""

import struct
import zlib

import numpy as np

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


def packed(samples, bits, order=">"):
    """Rows of samples (h, n) as bytes: each row begins at a new one. uint8 (h, bytes)."""
    if bits in (16, 32):
        return np.ascontiguousarray(samples.astype(f"{order}u{bits // 8}")).view(np.uint8)
    single = (samples[..., np.newaxis].astype(int) >> np.arange(bits)[::-1]) & 1
    return np.packbits(single.reshape(len(samples), -1).astype(np.uint8), axis=1)


def tiff(samples, bits, *, order="<", photometric=1, deflate=False, orientation=1, more=()):
    """A TIFF of unsigned samples (h, w, channels) of as many bits, in the ``order`` "<" or ">" of
    bytes, with ``more`` tags, {number: (type, values)}."""
    height, width, channels = samples.shape
    pixels = packed(samples.reshape(height, -1), bits, order).tobytes()
    pixels = zlib.compress(pixels) if deflate else pixels
    pixels += bytes(len(pixels) % 2)
    tags = {
        256: ("H", [width]), 257: ("H", [height]), 258: ("H", [bits] * channels),
        259: ("H", [8 if deflate else 1]), 262: ("H", [photometric]), 273: ("I", [8]),
        274: ("H", [orientation]), 277: ("H", [channels]), 278: ("H", [height]),
        279: ("I", [len(pixels)]), **dict(more),
    }  # fmt: skip
    entries, start = b"", 8 + len(pixels)
    for number, (kind, values) in sorted(tags.items()):
        data = struct.pack(f"{order}{len(values)}{kind}", *values)
        if len(data) > 4:
            pixels += data + bytes(len(data) % 2)
            data, start = struct.pack(f"{order}I", start), 8 + len(pixels)
        head = struct.pack(f"{order}HHI", number, {"H": 3, "I": 4}[kind], len(values))
        entries += head + data.ljust(4, b"\0")
    magic = b"II*\0" if order == "<" else b"MM\0*"
    directory = struct.pack(f"{order}H", len(tags)) + entries + bytes(4)
    return magic + struct.pack(f"{order}I", start) + pixels + directory


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
