"""Planner of cuDNN graphs: chooses, once, the fastest of the plans that cuDNN offers.

A plan is an engine with its knobs, and is identified by cuDNN's name ("eng47_k2=5_k13=1"):
cudnn-frontend 1.28 lacks some knobs of cuDNN 9.28, so that it cannot always build from knobs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from chainer_jo.engine.cuda.cudnn_choices import Choices
from chainer_jo.engine.cuda.cudnn_plans import Graph, address

#: Numerical notes of refused plans, by precision. Nondeterministic plans are always refused: CUDA
#: graph and eager run, resumed and uninterrupted run agree bit for bit.
_REFUSED = {
    "fp32": (
        "NONDETERMINISTIC", "DOWN_CONVERT_INPUTS", "TENSOR_CORE", "REDUCED_PRECISION_REDUCTION",
        "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13",
    ),
    "tf32": ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS"),
    "mixed": ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS"),
}  # fmt: skip
#: Seconds for building a graph's plans after the first, once per GPU: long enough for all
#: deterministic plans with prebuilt engines, and for the first of those that cuDNN compiles.
SECONDS = 1.0
#: Maximum workspace of plans after the first, in bytes.
WORKSPACE = 256 << 20
#: Fraction by which a plan has to be faster than the plans that cuDNN prefers.
MARGIN = 0.03
#: Number of timings per plan, in turn with the others; the minimum counts.
ROUNDS = 3
#: Number of runs per timing.
RUNS = 4
#: Passes of the kernel that occupies the GPU, for tenths of a millisecond, while runs are queued;
#: without it Python would be timed.
OCCUPIED = 200_000

_logger = logging.getLogger(__name__)


class Plan:
    """A graph and its plans.

    Attributes
    ----------
    text : description of the graph.
    candidates : workspace in bytes of each plan to choose from, the preferred first; empty after
        the choice.
    name : chosen plan, or None.
    lost : plan that was chosen earlier and no longer exists, or None.
    """

    def __init__(self, text: str, graph: Graph, not_supported: type[Exception]) -> None:
        self.text = text
        self.candidates: dict[str, int] = {}
        self.name: str | None = None
        self.lost: str | None = None
        self._nodes, self._uids = graph.nodes, graph.uids
        self._workspace = 0
        count = self._nodes.get_execution_plan_count()
        self._indices = {self._nodes.get_plan_name_at_index(i): i for i in range(count)}
        self._errors = ValueError, RuntimeError, not_supported

    def find_candidates(self, shipped: str | None) -> None:
        """Fills `candidates` with the plans that can be built within the limits, the shipped plan
        first."""
        spent = last = 0.0
        for name in sorted(self._indices, key=lambda name: name != shipped):
            if self.candidates and spent + last > SECONDS:
                break
            started = time.perf_counter()
            built = self.select(name)
            last = time.perf_counter() - started
            spent += last if self.candidates else 0.0
            if built and (not self.candidates or self._workspace <= WORKSPACE):
                self.candidates[name] = self._workspace

    def select(self, name: str) -> bool:
        """Sets the plan of `run`, built if necessary; False if it cannot be built or is refused."""
        with suppress(KeyError, *self._errors):
            self._nodes.build_plan_at_index(self._indices[name])  # the graph runs the last one
            self._workspace = self._nodes.get_workspace_size()
            return True
        return False

    def choose(self, name: str) -> None:
        """Selects a plan for good; warns if it no longer exists."""
        if self.select(name):
            self.name, self.candidates = name, {}
        else:
            self.lost = name
            _logger.warning(
                "there is no plan %s any more for %s; chosen again: runs that were begun with it "
                "go on with other rounding", name, self.text,
            )  # fmt: skip

    @property
    def workspace(self) -> int:
        """Bytes that `run` needs, the maximum over the candidates."""
        return max(self.candidates.values(), default=self._workspace)

    def run(self, handle: Any, workspace: int, arrays: Mapping[str, Any]) -> None:
        """Runs on the handle's stream, given the graph's arrays by name, and a workspace."""
        named = {uid: address(arrays[name]) for name, uid in self._uids.items()}
        self._nodes.execute(named, workspace, handle=handle)

    def _runs(self, name: str, run: Callable[[], None]) -> bool:
        """Loads a plan, and compiles it if need be; False if it does not run."""
        with suppress(*self._errors):
            self.select(name)
            run()
            return True
        return False

    def times(
        self, run: Callable[[], None], cuda: Any, occupy: Callable[[int], Any]
    ) -> dict[str, float]:
        """Microseconds per run of each candidate that works, on the current stream.

        Parameters
        ----------
        run : queues the graph; has to be idempotent.
        cuda : ``cupy.cuda``, or its substitute in a test.
        occupy : queues a number of passes of independent work.
        """
        spans: dict[str, list[tuple[Any, Any]]] = {
            name: [] for name in self.candidates if self._runs(name, run)
        }
        for _ in range(ROUNDS):
            for name, measured in spans.items():
                self.select(name)
                first, last = cuda.Event(), cuda.Event()
                occupy(OCCUPIED)
                first.record()
                for _ in range(RUNS):
                    run()
                last.record()
                measured.append((first, last))
        if spans:
            last.synchronize()
        return {
            name: min(1e3 * cuda.get_elapsed_time(*span) for span in measured) / RUNS
            for name, measured in spans.items()
        }


class Planner:
    """Plans graphs, each once.

    Parameters
    ----------
    library, handle : module ``cudnn`` and its handle.
    precision : "fp32", "tf32" or "mixed".
    choices : earlier choices.
    """

    def __init__(self, library: ModuleType, handle: Any, precision: str, choices: Choices) -> None:
        self._library = library
        self._handle = handle
        self._precision = precision
        self._choices = choices
        self._plans: dict[tuple, Plan | None] = {}
        self._used: set[tuple] = set()  # since `keep_in`, with which a run begins

    def keep_in(self, folder: Path) -> None:
        """Follows the choices kept in a results folder from now on, and adds to them. Raises
        UserError if it cannot be written to."""
        self._choices.keep_in(folder)
        self._used.clear()
        self._plans = {
            key: plan
            for key, plan in self._plans.items()
            if plan is None or plan.name == self._choices.get(plan.text)
        }

    @property
    def digest(self) -> str | None:
        """Digest (12 hexadecimal digits) of plans that ran since `keep_in`; None if none did."""
        plans = [plan for plan in map(self._plans.get, self._used) if plan and plan.name]
        if not plans:
            return None
        names = json.dumps({plan.text: plan.name for plan in plans}, sort_keys=True)
        return hashlib.sha256(names.encode()).hexdigest()[:12]

    def plan(self, describe: Callable[..., None], *arguments: Any) -> Plan | None:
        """Plan of ``describe(graph, *arguments)``; None if cuDNN has no engine."""
        key = (describe, *arguments)
        if key not in self._plans:
            self._plans[key] = self._build(*key)
        self._used.add(key)
        return self._plans[key]

    def record(self, plan: Plan, microseconds: dict[str, float]) -> None:
        """Chooses a candidate for good: one that is faster by MARGIN than all that cuDNN prefers to
        it, or cuDNN's first without times. The choice of another process takes precedence."""
        best = next(iter(microseconds or plan.candidates))
        for name, duration in microseconds.items():
            if duration < (1 - MARGIN) * microseconds[best]:
                best = name
        plan.choose(self._choices.record(plan.text, best, microseconds, plan.lost))
        if plan.name is None:
            plan.choose(best)

    def _build(self, describe: Callable[..., None], *arguments: Any) -> Plan | None:
        library = self._library
        graph = Graph(library, self._handle, self._precision)
        describe(graph, *arguments)
        nodes = graph.nodes
        try:
            nodes.validate()
            nodes.build_operation_graph()
            nodes.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
            notes = library.numerical_note.__members__
            nodes.deselect_numeric_notes([notes[name] for name in _REFUSED[self._precision]])
            nodes.check_support()
        except library.cudnnGraphNotSupportedError:
            return None
        text = " ".join(map(str, (self._precision, describe.__name__, *arguments)))
        plan = Plan(text, graph, library.cudnnGraphNotSupportedError)
        if (earlier := self._choices.get(text)) is not None:
            plan.choose(earlier)
        if plan.name is None:
            plan.find_candidates(self._choices.shipped.get(text))
            if not plan.candidates:
                return None
            if len(plan.candidates) == 1:
                self.record(plan, {})
        return plan
