"""The paper: Sections 4, 5.1 and 5.2, and Appendix A. Imports `engine` and `data`.

In the order of the paper:

- the joint problem (Section 4.1, Algorithm 1): `soft_labels`, `updater`, `extensions.epoch_end`;
- the losses (Sections 3 and 4, eqs. 1 to 12): `losses`, `objectives`;
- data sets and noise (Section 5.1): `task`, `noise`, `pseudo_labels`;
- implementation (Section 5.2): `augmentation`, `iterator`, `images`, `optimizers`, `extensions`;
- baselines (Section 5.6): `forward_correction`, `crf`, `cnn_crf`;
- the networks (Appendix A, Section 5.8): `preact_resnet`, `resnet50`, `resnet50_weights`.
"""
