"""The method itself: LabelStore, JointUpdater, the extension LabelUpdate, best and last scores."""
