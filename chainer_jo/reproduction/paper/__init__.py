"""Every number printed in the paper, as data, each in one place.

`tables` has the tables, `settings` the numbers of the running text::

    >>> from chainer_jo.reproduction.paper import settings, tables
    >>> tables.TABLE1.cells["joint", "last", "test", 0.5]
    89.8
    >>> tables.TABLE6.chosen["alpha"], settings.CIFAR_SECOND_STEP.drops
    (0.8, (40, 80))
"""
