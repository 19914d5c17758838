import chainer
import numpy as np
import pytest
from chainer import gradient_check
from engines import backend

from chainer_jo.errors import UserError
from chainer_jo.method.forward_correction import ForwardCorrection, ForwardCorrectionLoss
from chainer_jo.method.noise import transition_matrix

pytestmark = pytest.mark.usefixtures("arithmetic")


def asymmetric(c, r):
    """The matrix is mostly zeros."""
    return transition_matrix(r, c, {0: 1, 2: 3})


def batch(n=7, c=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, c)) * 3, np.eye(c)[rng.integers(c, size=n)]


def reference(logits, labels, transition):
    """The loss as written, row by row in float64."""
    losses = []
    for z, y in zip(logits, labels, strict=True):
        s = np.exp(z) / np.exp(z).sum()
        losses.append(-np.log(y @ transition.T @ s))
    return np.mean(losses)


@pytest.mark.parametrize("transition", [np.eye(5), transition_matrix(0.7, 5), asymmetric(5, 0.4)])
@pytest.mark.parametrize("soft", [False, True])
def test_value_is_the_formula(transition, soft):
    logits, labels = batch()
    if soft:
        labels = np.random.default_rng(1).dirichlet(np.ones(5), size=7)
    loss = ForwardCorrectionLoss(labels, transition).apply((logits,))[0]
    np.testing.assert_allclose(loss.array, reference(logits, labels, transition), rtol=1e-12)


@pytest.mark.parametrize("transition", [transition_matrix(0.3, 5), asymmetric(5, 0.5)])
def test_gradient(transition):
    logits, labels = batch()
    gradient_check.check_backward(
        lambda z: ForwardCorrectionLoss(labels, transition).apply((z,))[0],
        (logits,),
        np.array(1.7),
        atol=1e-7,
        rtol=1e-6,
    )


def test_an_overconfident_network_and_zeros_in_the_matrix_give_finite_numbers():
    logits = chainer.Variable(np.array([[1e4, 0, -1e4]], np.float32))
    labels = np.array([[0, 0, 1]], np.float32)
    transition = np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]], np.float32)
    with np.errstate(all="raise", under="ignore"):
        loss = ForwardCorrection(transition)(logits, labels)
        loss.backward()
    # Only classes 1 and 2 yield label 2: -log(0.5 e^0 / e^10000).
    np.testing.assert_allclose(loss.array, 1e4, rtol=1e-3)
    np.testing.assert_allclose(logits.grad, [[1, -1, 0]], atol=1e-6)


def test_link_offers_what_the_trainer_reads():
    logits, labels = batch()
    logits = chainer.Variable(logits.astype(np.float32))
    objective = ForwardCorrection(transition_matrix(0.5, 5))
    loss = objective(logits, labels.astype(np.float32))
    loss.backward()
    assert loss.dtype == logits.grad.dtype == objective.probabilities.dtype == np.float32
    assert objective.terms["loss"].shape == ()
    np.testing.assert_allclose(objective.probabilities.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(objective.probabilities, objective.predict(logits), rtol=1e-6)
    assert list(objective.params()) == []


@pytest.mark.parametrize("transition, words", [
    (np.ones((2, 3)), "square"),
    (np.array([[0.5, 0.6], [0, 1]]), "row 0"),
    (np.array([[1, 0], [1.2, -0.2]]), "row 1"),
    (np.array([[1, 0], [np.nan, 1]]), "row 1"),
])  # fmt: skip
def test_a_matrix_that_is_no_transition_matrix_is_refused(transition, words):
    with pytest.raises(UserError, match=words):
        ForwardCorrection(transition)


def test_a_backend_changes_no_bit_on_a_cpu():
    """Its product of matrices, which a GPU needs for CUDA graphs, is NumPy's."""
    rng = np.random.default_rng(2)
    transition = rng.dirichlet(np.ones(10), 10).astype(np.float32)
    made = backend("fp32")
    for images in (1, 7, 64, 128):
        logits = rng.standard_normal((images, 10)).astype(np.float32)
        labels = rng.dirichlet(np.ones(10), images).astype(np.float32)
        values = []
        for used in (None, made):
            z = chainer.Variable(logits)
            with chainer.using_config("jo_backend", used):
                loss = ForwardCorrectionLoss(labels, transition).apply((z,))[0]
            loss.backward()
            values.append((loss.array, z.grad))
        assert values[0][0] == values[1][0]
        np.testing.assert_array_equal(values[0][1], values[1][1])
