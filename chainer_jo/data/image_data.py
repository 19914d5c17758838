"""`ImageData` of earlier versions is `labelled_data.clean_data`."""

from chainer_jo.data.labelled_data import clean_data

ImageData = clean_data
