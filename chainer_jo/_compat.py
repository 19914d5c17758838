"""What Chainer 7.8.1 needs on today's NumPy and Python; imported before chainer, by the package's __init__ alone."""

import numpy

if not hasattr(numpy, "sctypes"):
    # Removed in NumPy 2.0; chainer.functions.array.as_strided and chainer.testing list types with it.
    numpy.sctypes = {
        "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
        "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
        "float": [numpy.float16, numpy.float32, numpy.float64, numpy.longdouble],
        "complex": [numpy.complex64, numpy.complex128, numpy.clongdouble],
        "others": [bool, object, bytes, str, numpy.void],
    }
