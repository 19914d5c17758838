"""Reading: images and noisy labels of a user, and features of other models."""
