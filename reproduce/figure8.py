"""Figure 8: images whose labels the joint method reassigned from T-shirt to Hoodie."""

from chainer_jo.commands.clothing1m import main
from chainer_jo.report.clothing1m import figure8

if __name__ == "__main__":
    main(figure8, __doc__)
