"""Figure 7: images whose labels the joint method reassigned from Hoodie to T-shirt."""

from chainer_jo.commands.clothing1m import main
from chainer_jo.report.clothing1m import figure7

if __name__ == "__main__":
    main(figure7, __doc__)
