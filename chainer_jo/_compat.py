"""What Chainer 7.8.1 needs on today's NumPy and Python; imported before chainer, by the package's __init__ alone."""

import numpy

if not hasattr(numpy, "sctypes"):
    # Removed in NumPy 2.0; chainer.testing and chainer.utils.type_check list the float types with it.
    numpy.sctypes = {"float": [numpy.float16, numpy.float32, numpy.float64, numpy.longdouble]}
