"""Examples in the docstrings of the method are right."""

import doctest
import importlib
import pkgutil

import pytest

from chainer_jo import method

MODULES = [m.name for m in pkgutil.walk_packages(method.__path__, f"{method.__name__}.")]
EXAMPLES = [
    test
    for name in MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_examples_give_what_they_print(example):
    assert doctest.DocTestRunner().run(example).failed == 0
