"""The loss terms against float64 NumPy written from the paper's equations, and their gradients."""

import chainer
import numpy as np
import pytest
from chainer import gradient_check

from chainer_jo.errors import UserError
from chainer_jo.method.losses import (
    JointLoss,
    classification_loss,
    entropy_loss,
    joint_loss,
    prior_loss,
)
from chainer_jo.method.objectives import JointObjective

pytestmark = pytest.mark.usefixtures("arithmetic")

N, C = 7, 5


@pytest.fixture
def case():
    rng = np.random.default_rng(3)
    logits = rng.normal(scale=2, size=(N, C))
    soft = rng.dirichlet(np.ones(C), N)
    soft[0] = np.eye(C)[2]
    prior = rng.dirichlet(5 * np.ones(C))
    return logits, soft, prior


def reference(logits, labels, prior):
    """Terms by their names (eqs. 6, 7 and 10 to 12) and the gradient of 1, 1.2 and 0.8 times L_c,
    L_p and L_e, in float64."""
    log_s = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    log_s -= np.log(np.exp(log_s).sum(axis=1, keepdims=True))
    s, n = np.exp(log_s), len(logits)
    cross_entropy = -(labels * log_s).sum() / n
    terms = {
        "cross_entropy": cross_entropy,
        "classification": cross_entropy + (labels * np.log(np.where(labels, labels, 1))).sum() / n,
        "prior": (prior * np.log(prior / s.mean(axis=0))).sum(),
        "entropy": -(s * log_s).sum() / n,
    }
    ratio = prior / s.mean(axis=0)
    gradient = s * labels.sum(axis=1, keepdims=True) - labels
    gradient -= 1.2 * s * (ratio - (s * ratio).sum(axis=1, keepdims=True))
    gradient -= 0.8 * s * (log_s - (s * log_s).sum(axis=1, keepdims=True))
    return terms, gradient / n


def test_terms_are_those_of_the_paper(case):
    terms, _ = reference(*case)
    z, y, p = (array.astype(np.float32) for array in case)
    assert classification_loss(z, y).array == pytest.approx(terms["classification"], rel=1e-5)
    assert prior_loss(z, p).array == pytest.approx(terms["prior"], rel=1e-5)
    assert entropy_loss(z).array == pytest.approx(terms["entropy"], rel=1e-5)
    expected = terms["classification"] + 1.2 * terms["prior"] + 0.8 * terms["entropy"]
    assert joint_loss(z, y, p, 1.2, 0.8).array == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "alpha, beta, has_labels",
    [(0.0, 0.0, True), (1.2, 0.0, False), (0.0, 0.8, False), (1.2, 0.8, True)],
)
def test_gradients(case, alpha, beta, has_labels):
    logits, labels, prior = case

    def loss(z):
        return JointLoss(labels if has_labels else None, prior, alpha, beta).apply((z,))[0]

    gradient_check.check_backward(loss, logits, np.array(1.7), dtype=np.float64, atol=1e-6)


@pytest.mark.parametrize("prior, alpha", [
    ([0.5, 0.6], 0), ([1.0, 0.0], 0), ([0.5, np.nan], 0), ([], 0), (1.0, 0),
    ([[0.5, 0.5], [0.4, 0.5]], 0), ([0.5, 0.5], -1), ([0.5, 0.5], np.nan), ([0.5, 0.5], np.inf),
])  # fmt: skip
def test_objective_refuses_what_is_no_distribution_or_weight(prior, alpha):
    with pytest.raises(UserError, match="alpha" if np.shape(prior) == (2,) and alpha else "prior"):
        JointObjective(np.array(prior), alpha)
    with pytest.raises(UserError, match="beta"):
        JointObjective(np.array([0.5, 0.5]), beta=-1)
    JointObjective(np.array([0.5, 0.50005]))  # rounded
    with pytest.raises(UserError, match="sum to 1"):
        JointObjective(np.array([0.5, 0.5003]))


@pytest.mark.parametrize("sure", [1.0, 60.0, 100.0, 200.0, 1e4])
def test_labels_of_0_and_1_and_probabilities_that_underflow(sure):
    """Logits up to `sure` apart, right and wrong; every term against float64 on rows that it has
    finite."""
    rng = np.random.default_rng(1)
    logits = rng.uniform(-1, 1, (64, C)) * sure
    labels = np.eye(C)[rng.integers(C, size=64)]
    labels[::8] = rng.dirichlet(np.ones(C), 8)
    # What a mean of probabilities that underflow is: below the normal numbers, but not zero.
    labels[3, :2] = 1e-39, 1e-45
    prior = np.full(C, 1 / C)
    z = chainer.Variable(logits.astype(np.float32))
    objective = JointObjective(prior, 1.2, 0.8)
    objective(z, labels.astype(np.float32)).backward()
    expected, gradient = reference(z.array, labels, prior)
    for name, value in expected.items():
        assert objective.terms[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name
    total = expected["classification"] + 1.2 * expected["prior"] + 0.8 * expected["entropy"]
    assert objective.terms["loss"] == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(z.grad, gradient, atol=1e-6)


def test_a_class_without_any_probability_makes_the_prior_term_infinite():
    z = np.full((4, 3), 200, np.float32)
    z[:, 2] = 0
    objective = JointObjective(np.full(3, 1 / 3), 1.2, 0.8)
    with np.errstate(divide="ignore"):
        objective(chainer.Variable(z), np.eye(3, dtype=np.float32)[[0, 1, 0, 1]])
    assert objective.terms["prior"] == objective.terms["loss"] == np.inf
    assert np.isfinite(objective.terms["classification"])
    assert np.isfinite(objective.probabilities).all()
