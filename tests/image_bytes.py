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


def tiff(samples, bits, *, order="<", photometric=1, deflate=False, orientation=1, planar=False,
         extra=(), colours=None, more=()):  # fmt: skip
    """A TIFF of unsigned samples (h, w, channels), all of as many bits.

    Parameters
    ----------
    order : of bytes, "<" or ">".
    planar : each channel on its own.
    extra : meaning of the channels beyond those of the colours.
    colours : of a palette, (2 ** bits, 3) of 16 bits.
    more : further tags, (number, type, values).
    """
    height, width, channels = samples.shape
    planes = samples.transpose(2, 0, 1) if planar else samples.reshape(1, height, -1)
    strips = [packed(plane, bits, order).tobytes() for plane in planes]
    strips = [zlib.compress(strip) for strip in strips] if deflate else strips
    tags = [
        (256, "H", [width]),
        (257, "H", [height]),
        (258, "H", [bits] * channels),
        (259, "H", [8 if deflate else 1]),
        (262, "H", [photometric]),
        (273, "I", None),
        (274, "H", [orientation]),
        (277, "H", [channels]),
        (278, "H", [height]),
        (279, "I", [len(strip) for strip in strips]),
        (284, "H", [2 if planar else 1]),
        *more,
    ]
    if colours is not None:
        tags.append((320, "H", colours.T.ravel().tolist()))
    if extra:
        tags.append((338, "H", list(extra)))
    offsets = np.cumsum([8, *map(len, strips)])[: len(strips)].tolist()
    body = b"".join(strips)
    body += bytes(len(body) % 2)
    entries, start = b"", 8 + len(body)
    for number, kind, values in sorted(tags):
        values = offsets if values is None else values
        data = struct.pack(f"{order}{len(values)}{kind}", *values)
        if len(data) > 4:
            entry, body = start, body + data + bytes(len(data) % 2)
            start = 8 + len(body)
            data = struct.pack(f"{order}I", entry)
        number_of_type = {"B": 1, "H": 3, "I": 4}[kind]
        head = struct.pack(f"{order}HHI", number, number_of_type, len(values))
        entries += head + data.ljust(4, b"\0")
    magic = b"II*\0" if order == "<" else b"MM\0*"
    directory = struct.pack(f"{order}H", len(tags)) + entries + bytes(4)
    return magic + struct.pack(f"{order}I", start) + body + directory


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
         (1, 0, 2, 1))  # fmt: skip


def png(samples, bits, colour_type, *, interlaced=False, before=()):
    """A PNG of samples (h, w, channels); `before` are chunks, (kind, data), before the pixels."""
    height, width, _ = samples.shape
    rows = b""
    for top, left, down, right in ADAM7 if interlaced else ((0, 0, 1, 1),):
        part = samples[top::down, left::right]
        if part.size:
            for row in packed(part.reshape(len(part), -1), bits):
                rows += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, interlaced)
    chunks = [(b"IHDR", head), *before, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def exif(orientation):
    """EXIF data that have an orientation alone."""
    return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + bytes([0, orientation]) + bytes(6)
