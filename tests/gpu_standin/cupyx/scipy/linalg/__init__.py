"""Chainer imports it."""
