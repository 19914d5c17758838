"""scikit-learn classifier that corrects labels before it learns them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from chainer_jo.relabel.arrays import check_masks, common_index, matrix, training_arrays
from chainer_jo.relabel.estimate import training
from chainer_jo.relabel.estimate.features import FeatureInput
from chainer_jo.relabel.estimate.label_noise import majority


class RelabelClassifier(ClassifierMixin, BaseEstimator):
    """Finds wrong labels as `relabel` does, then learns from the new ones.

    >>> features = [[i, j] for i in (0, 8) for j in range(30)]  # 30 cats, 30 dogs
    >>> RelabelClassifier().fit(features, ["cat"] * 29 + ["dog"] * 31).predict([[0, 9], [8, 9]])
    array(['cat', 'dog'], dtype='<U3')

    Parameters
    ----------
    seed : of folds, weights and data order.

    Attributes
    ----------
    classes_ : (c,), sorted.
    errors_ : `LabelErrors` of the labels it was fitted to.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any) -> RelabelClassifier:
        """Learns from X (n, d) and noisy labels y (n,), or (n, m) as in `relabel`. Raises
        scikit-learn's errors for other objects than its arrays, UserError as `relabel` does."""
        common_index(X, y)
        check_masks("X", X)
        check_masks("y", y)
        if getattr(getattr(y, "dtype", None), "kind", "") == "T":
            y = np.asarray(y).tolist()  # scikit-learn does not know NumPy's StringDType
        checks: dict[str, Any] = {"dtype": np.float64, "ensure_min_samples": 2, "estimator": self}
        shape = np.asarray(y, object).shape
        if len(shape) == 2 and shape[1] > 1:
            features, labels = check_array(X, **checks), y
        else:
            features, labels = check_X_y(X, y, **checks)
        data, given, classes = training_arrays(features, labels)
        check_classification_targets(classes[majority(given)])
        recipe = training.Recipe()
        errors = training.estimate_errors(data, given, classes, recipe, self.seed)
        soft = errors.probabilities.astype(np.float32)
        self._model = training.second_step(data, soft, recipe, self.seed)
        self._normalisation, self.classes_, self.errors_ = data.normalisation, classes, errors
        validate_data(self, X, skip_check_array=True)  # notes number and names of the columns
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (m, c) float32 of features (m, d), whose columns have the same names."""
        check_is_fitted(self)
        check_masks("X", X)
        features = matrix("X", validate_data(self, X, reset=False, dtype=np.float64))
        return training.predict(self._model, FeatureInput(features, *self._normalisation))

    def predict(self, X: Any) -> np.ndarray:
        """Classes (m,) of features (m, d)."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]
