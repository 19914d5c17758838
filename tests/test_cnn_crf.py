import itertools

import chainer
import numpy as np
import pytest
from chainer import gradient_check

from chainer_jo.errors import UserError
from chainer_jo.method.cnn_crf import CNNCRF, CRFLoss, auxiliary_log_posterior, e_step

pytestmark = pytest.mark.usefixtures("arithmetic")

N, C = 4, 3
TRANSITION = np.array([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.1, 0.2, 0.7]])
PRIOR = np.array([0.5, 0.3, 0.2])


@pytest.fixture
def model():
    """Logits (N, 2C), W (C, C) and one-hot labels (N, C), float64."""
    rng = np.random.default_rng(0)
    labels = np.eye(C)[rng.integers(C, size=N)]
    return rng.normal(size=(N, 2 * C)) * 2, rng.normal(size=(C, C)), labels


def crf_loss(logits, W, expected):
    return CRFLoss(expected).apply((logits, W))[0]


def enumerated_joint(logits, W):
    """p(z, y | x) by going through all pairs, one image at a time."""
    joint = np.empty((len(logits), C, C))
    for i, x in enumerate(logits):
        for z, y in itertools.product(range(C), repeat=2):
            joint[i, z, y] = np.exp(x[z] + x[C + y] + W[z, y])
        joint[i] /= sum(joint[i, z, y] for z, y in itertools.product(range(C), repeat=2))
    return joint


def enumerated_auxiliary(y):
    """p_aux(z | y) by Bayes."""
    weights = np.array([PRIOR[z] * TRANSITION[z, y] for z in range(C)])
    return weights / weights.sum()


def enumerated_e_step(joint, y, k):
    """q(z | x, y) of one image, for its joint (C, C); docs/baselines.md."""
    posterior = joint[:, y] / joint[:, y].sum()
    weights = (posterior * enumerated_auxiliary(y) ** k) ** (1 / (1 + k))
    return weights / weights.sum()


def test_a_label_that_never_occurs_leaves_the_prior():
    transition = np.array([[0.0, 1.0], [0.0, 1.0]])
    auxiliary = np.exp(auxiliary_log_posterior(transition, np.array([0.75, 0.25])))
    np.testing.assert_allclose(auxiliary, [[0.75, 0.75], [0.25, 0.25]])


@pytest.mark.parametrize("k", [0.5, 5.0, 40.0])
def test_e_step(model, k):
    logits, W, labels = model
    q = e_step(logits, W, labels, auxiliary_log_posterior(TRANSITION, PRIOR), k)
    joint = enumerated_joint(logits, W)
    for i, y in enumerate(labels.argmax(axis=1)):
        np.testing.assert_allclose(q[i, :, y], enumerated_e_step(joint[i], y, k), rtol=1e-5)
        assert q[i].sum() == pytest.approx(1)


def test_loss_is_the_expected_log_likelihood(model):
    logits, W, labels = model
    k = 5.0
    q = e_step(logits, W, labels, auxiliary_log_posterior(TRANSITION, PRIOR), k)
    joint = enumerated_joint(logits, W)
    expected = 0.0
    for i, y in enumerate(labels.argmax(axis=1)):
        posterior = enumerated_e_step(joint[i], y, k)
        expected -= sum(posterior[z] * np.log(joint[i, z, y]) for z in range(C)) / N
    np.testing.assert_allclose(crf_loss(logits, W, q).array, expected, rtol=1e-6)


def test_a_soft_label_is_the_mean_over_its_classes(model):
    logits, W, _ = model
    log_auxiliary = auxiliary_log_posterior(TRANSITION, PRIOR)
    weights = np.array([0.2, 0.5, 0.3])
    soft = crf_loss(logits, W, e_step(logits, W, np.tile(weights, (N, 1)), log_auxiliary, 5.0))
    hard = [
        crf_loss(logits, W, e_step(logits, W, np.eye(C)[[y] * N], log_auxiliary, 5.0)).array
        for y in range(C)
    ]
    np.testing.assert_allclose(soft.array, weights @ hard, rtol=1e-12)


def test_gradients(model):
    logits, W, labels = model
    q = e_step(logits, W, labels, auxiliary_log_posterior(TRANSITION, PRIOR), 5.0)
    gradient_check.check_backward(
        lambda x, w: crf_loss(x, w, q), (logits, W), np.array(0.7), atol=1e-7, rtol=1e-6
    )


def test_link_trains_both_heads_and_the_pairs(model):
    logits, W, labels = model
    objective = CNNCRF(TRANSITION, PRIOR, epochs=10)
    objective.W.array[...] = W
    objective.cleargrads()
    logits = chainer.Variable(logits.astype(np.float32))
    loss = objective(logits, labels.astype(np.float32))
    loss.backward()
    marginal = enumerated_joint(logits.array, W).sum(axis=2)
    np.testing.assert_allclose(objective.probabilities, marginal, rtol=1e-5)
    np.testing.assert_allclose(objective.predict(logits), marginal, rtol=1e-5)
    assert loss.dtype == objective.probabilities.dtype == np.float32
    assert objective.terms["loss"].shape == ()
    assert np.abs(logits.grad).min() > 0
    assert np.abs(objective.W.grad).min() > 0


def test_overconfident_heads_give_finite_numbers(model):
    _, _, labels = model
    logits = chainer.Variable(np.tile(np.array([1e4, 0, -1e4], np.float32), (N, 2)))
    objective = CNNCRF(TRANSITION, PRIOR, epochs=10)
    objective.cleargrads()
    loss = objective(logits, labels.astype(np.float32))
    loss.backward()
    assert np.isfinite(loss.array)
    assert np.isfinite(logits.grad).all()
    assert np.isfinite(objective.W.grad).all()


def test_k_falls_from_40_to_5_over_the_first_tenth():
    objective = CNNCRF(TRANSITION, PRIOR, epochs=120)
    ks, changed = [], []
    for epoch in range(120):
        changed.append(objective.start_epoch(epoch))
        ks.append(objective.k)
    assert ks[0] == 40
    assert ks[6] == pytest.approx(22.5)
    assert ks[11] > ks[12] == ks[119] == 5
    assert changed == [False] + [True] * 12 + [False] * 107


@pytest.mark.parametrize("arguments, words", [
    ({"prior": np.array([0.5, 0.5])}, "expected 3 positive"),
    ({"prior": np.array([0.5, 0.5, 0.0])}, "positive"),
    ({"prior": np.array([0.5, 0.5, np.nan])}, "positive"),
    ({"transition": np.ones((3, 3))}, "row 0"),
])  # fmt: skip
def test_arguments_are_checked(arguments, words):
    with pytest.raises(UserError, match=words):
        CNNCRF(**({"transition": TRANSITION, "prior": PRIOR, "epochs": 10} | arguments))
