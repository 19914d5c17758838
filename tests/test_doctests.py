"""Examples in the docstrings of the method and of relabel's Python functions are right."""

import doctest
import importlib
import pkgutil

import pytest

from chainer_jo import method, relabel

MODULES = [m.name for m in pkgutil.walk_packages(method.__path__, f"{method.__name__}.")]
FOUND_IN = [importlib.import_module(name) for name in MODULES]
FOUND_IN += [getattr(relabel, name) for name in relabel.__all__]
FINDER = doctest.DocTestFinder(exclude_empty=True)
EXAMPLES = [test for each in FOUND_IN for test in FINDER.find(each) if test.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_examples_give_what_they_print(example):
    assert doctest.DocTestRunner().run(example).failed == 0


def test_every_function_for_users_has_an_example():
    names = {test.name.partition(".")[0] for test in EXAMPLES}
    assert {"RelabelClassifier", "find_label_errors", "relabel"} <= names
