"""How a graph of cuDNN's runs: by the fastest of the plans that it offers, chosen once.

A plan is an engine with its knobs, and cuDNN's name for it says both ("eng47_k2=5_k13=1"). It is
found again by its name: cudnn-frontend 1.28 does not know all knobs that cuDNN 9.28 has, so that
what it gives as engine and knobs cannot always be built from.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from chainer_jo.engine.cuda.cudnn_choices import Choices
from chainer_jo.engine.cuda.cudnn_plans import Graph

#: Plans that a precision does without, by numerical note. None takes those whose results vary from
#: call to call: CUDA graph and eager run, continued and uninterrupted run agree bit for bit.
_REFUSED = {
    "fp32": (
        "NONDETERMINISTIC", "DOWN_CONVERT_INPUTS", "TENSOR_CORE", "REDUCED_PRECISION_REDUCTION",
        "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13",
    ),
    "tf32": ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS"),
    "mixed": ("NONDETERMINISTIC", "DOWN_CONVERT_INPUTS"),
}  # fmt: skip
#: The most plans of a graph that are timed: the first that cuDNN offers.
CANDIDATES = 8
#: Seconds for building those after the first. Engines that are ready take milliseconds; those that
#: cuDNN compiles when it is asked for them take longer than this, and the first of them is taken.
SECONDS = 0.25
#: Bytes of memory that those after the first may work in.
WORKSPACE = 256 << 20
#: A plan has to be faster by this share than those that cuDNN prefers to it.
MARGIN = 0.03
#: Each plan is timed so often, in turn with the others; the least time counts.
ROUNDS = 3
#: Runs that are timed together.
RUNS = 4
#: Passes of the kernel that occupies the GPU before: some tenths of a millisecond, in which these
#: runs are queued. Otherwise it would be Python that is timed.
OCCUPIED = 200_000

_logger = logging.getLogger(__name__)


class Plan:
    """A graph that cuDNN has planned.

    Attributes
    ----------
    graph : what it computes, in words.
    offered : names of cuDNN's plans for it in cuDNN's order, those that are refused among them.
    candidates : of those that one is to be chosen from, the bytes of workspace; empty afterwards.
    name : the plan that was chosen, or None.
    lost : one that had been chosen before and is not there any more, or None.
    """

    def __init__(self, text: str, graph: Graph) -> None:
        self._nodes, self._uids = graph.nodes, graph.uids
        self.graph = text
        count = self._nodes.get_execution_plan_count()
        self.offered = [self._nodes.get_plan_name_at_index(i) for i in range(count)]
        self.candidates: dict[str, int] = {}
        self.name: str | None = None
        self.lost: str | None = None
        self._workspace = 0
        self._errors = ValueError, RuntimeError, graph.library.cudnnGraphNotSupportedError

    def select(self, name: str) -> bool:
        """Has `run` use a plan, built if need be; False if it is refused or cannot be built."""
        try:
            self._nodes.build_plan_at_index(self.offered.index(name))
        except self._errors:
            return False
        self._workspace = self._nodes.get_workspace_size()
        return True

    def choose(self, name: str) -> None:
        """Selects a plan for good; if it is not there, says so."""
        if self.select(name):
            self.name, self.candidates = name, {}
        else:
            self.lost = name
            _logger.warning(
                "cuDNN has no plan %s any more for %s; chosen anew: runs that were begun with it "
                "go on with other rounding", name, self.graph,
            )  # fmt: skip

    @property
    def workspace(self) -> int:
        """Bytes that `run` needs, by whichever of the candidates."""
        return max(self.candidates.values(), default=self._workspace)

    def run(self, handle: Any, workspace: int, addresses: dict[str, int]) -> None:
        """Runs on the handle's stream; every named tensor and the workspace by its address."""
        named = {uid: addresses[name] for name, uid in self._uids.items()}
        self._nodes.execute(named, workspace, handle=handle)

    def times(
        self, run: Callable[[], None], cuda: Any, occupy: Callable[[int], Any]
    ) -> dict[str, float]:
        """The microseconds of one run by each candidate that works, on the current stream.

        Parameters
        ----------
        run : queues the graph; doing it twice is doing it once.
        cuda : ``cupy.cuda``, or what stands for it in a test.
        occupy : called with a number, queues as many passes of work that need nothing.
        """
        spans: dict[str, list[tuple[Any, Any]]] = {}
        for name in self.candidates:
            with suppress(*self._errors):
                self.select(name)
                run()  # what is loaded or compiled when it is first needed is there afterwards
                spans[name] = []
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
    library, handle : the module ``cudnn`` and a handle of it.
    precision : "fp32", "tf32" or "mixed".
    choices : what has been chosen before.
    """

    def __init__(self, library: ModuleType, handle: Any, precision: str, choices: Choices) -> None:
        self._library = library
        self._handle = handle
        self._precision = precision
        self._choices = choices
        self._plans: dict[tuple, Plan | None] = {}
        self._used: set[tuple] = set()

    def keep_in(self, folder: Path) -> None:
        """From now on goes by the choices that are kept below a results folder, and adds to them.

        Raises
        ------
        UserError
            if it cannot be written to.
        """
        self._choices.keep_in(folder)
        self._used.clear()
        self._plans = {
            key: plan
            for key, plan in self._plans.items()
            if plan is None or plan.name == self._choices.get(plan.graph)
        }

    @property
    def digest(self) -> str | None:
        """12 hexadecimal digits that follow from the plans of all graphs that ran since `keep_in`;
        None if none did."""
        plans = [plan for plan in map(self._plans.get, self._used) if plan and plan.name]
        if not plans:
            return None
        names = json.dumps({plan.graph: plan.name for plan in plans}, sort_keys=True)
        return hashlib.sha256(names.encode()).hexdigest()[:12]

    def plan(self, describe: Callable[..., None], *arguments: Any) -> Plan | None:
        """The plan of ``describe(graph, *arguments)``; None where cuDNN has no engine."""
        key = (describe, *arguments)
        if key not in self._plans:
            self._plans[key] = self._build(*key)
        self._used.add(key)
        return self._plans[key]

    def settle(self, plan: Plan, microseconds: dict[str, float]) -> None:
        """Chooses a candidate for good, one that is clearly faster than all that cuDNN prefers to
        it; cuDNN's first if no times are given. Whatever another process has kept comes first."""
        names = [name for name in plan.candidates if name in microseconds]
        best = next(iter(names or plan.candidates))
        for name in names:
            if microseconds[name] < (1 - MARGIN) * microseconds[best]:
                best = name
        times = [microseconds[name] for name in names]
        plan.choose(self._choices.settle(plan.graph, best, times, plan.lost))
        if plan.name is None:
            plan.choose(best)

    def _build(self, describe: Callable[..., None], *arguments: Any) -> Plan | None:
        library, graph = self._library, Graph(self._library, self._handle, self._precision)
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
        words = self._precision, describe.__name__, *arguments
        plan = Plan(" ".join(map(str, words)), graph)
        kept = self._choices.get(plan.graph)
        if kept is not None:
            plan.choose(kept)
        if plan.name is None:
            plan.candidates = _candidates(plan)
            if not plan.candidates:
                return None
            if len(plan.candidates) == 1:
                self.settle(plan, {})
        return plan


def _candidates(plan: Plan) -> dict[str, int]:
    """Names and workspaces of the first plans that can be built within the limits."""
    found: dict[str, int] = {}
    spent = last = 0.0
    for name in plan.offered:
        if len(found) == CANDIDATES or (found and spent + last > SECONDS):
            break
        started = time.perf_counter()
        built = plan.select(name)
        last = time.perf_counter() - started
        spent += last if found else 0.0
        if built and (not found or plan.workspace <= WORKSPACE):
            found[name] = plan.workspace
    return found
