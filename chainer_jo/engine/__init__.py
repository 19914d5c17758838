"""Convolution and batch normalisation, computed by interchangeable backends; captured steps.

Chainer functions (`conv2d`, `batch_norm_relu`, `network_ends`, `replayed`) ask for the current
`backend`; `choice` finds the fastest one of this machine. Imports only the top-level helpers.
"""
