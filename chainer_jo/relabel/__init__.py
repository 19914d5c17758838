"""One's own images with wrong labels: what `chainer-jo` does. Nothing outside imports it."""
