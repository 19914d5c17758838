"""Data sets as arrays: their sources, label noise, augmentation."""

from chainer_jo.datasets.image_data import ImageData

__all__ = ["ImageData"]
