"""Chainer looks whether it can be imported."""
