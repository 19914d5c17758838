"""The paper: joint optimisation of network parameters theta and labels Y on noisy labels.

In the order of the paper:

- alternating optimisation (Section 4.1, Algorithm 1): `algorithm1`; theta in `updater`, Y in
  `soft_labels`;
- the loss L = L_c + alpha L_p + beta L_e (Section 4.2, eqs. 5 to 12): `losses`, `objectives`;
- data sets and label noise (Section 5.1, eq. 13): `noisy_split`, `label_sources`, `noise`,
  `pseudo_labels`;
- implementation (Section 5.2): `augmentation`, `iterator`, `images`, `optimizers`, `extensions`;
- baselines (Sections 2.2 and 5.6): `forward_correction`, `cnn_crf`;
- networks (Appendix A, Section 5.8): `preact_resnet`, `resnet50`.
"""

from chainer_jo import _compat  # noqa: F401  (see there)
