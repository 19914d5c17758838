"""Means of computation: device, engine, files and deadline of runs."""

from __future__ import annotations

from dataclasses import dataclass

from chainer_jo.method.label_sources import LabelFiles


@dataclass(frozen=True)
class Computation:
    """Device, engine and files of a run; they change its result by rounding at most.

    Parameters
    ----------
    device : "cpu" or "cuda" or "cuda:N".
    engine : the backend of convolutions; see `chainer_jo.engine.backend.choose_backend`.
    graph : True to run steps on a GPU as CUDA graphs, where the engine supports it.
    deadline : value of ``time.monotonic()`` after which the run stops, saved; None: never.
    snapshot_seconds : least time between two checkpoints.
    label_files : files that labels come from.
    weights : file of the pretrained weights that descriptions name.
    workers : processes that decode images on disk; None: one per core less one.
    """

    device: str = "cpu"
    engine: str = "auto"
    graph: bool = True
    deadline: float | None = None
    snapshot_seconds: float = 20.0
    label_files: LabelFiles = LabelFiles()
    weights: str | None = None
    workers: int | None = None
