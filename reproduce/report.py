"""One HTML page, report.html, of the tables, figures and claims in a results folder."""

from chainer_jo.reproduction.commands.report import main

if __name__ == "__main__":
    main(__doc__)
