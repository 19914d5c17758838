"""Data sets as arrays: their sources, the split, label noise, augmentation."""

from chainer_jo.datasets.image_data import ImageData
from chainer_jo.datasets.source import data_name, load

__all__ = ["ImageData", "data_name", "load"]
