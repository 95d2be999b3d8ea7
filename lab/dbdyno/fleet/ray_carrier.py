"""Engines on the hosts of a Ray cluster. The only module that imports Ray.

Ray places the engines together or not at all, notices hosts that fail, and brings launchers for clouds and
Kubernetes. An engine is an actor that is never restarted: a trial that loses one has no result.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

import ray
from ray._private import worker as ray_worker
from ray.exceptions import ActorDiedError, ActorUnavailableError
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from dbdyno.experiment.model import FLEET_AUTO
from dbdyno.fleet import engine_host
from dbdyno.fleet.carrier import Carrier, FleetProblem, Place
from dbdyno.problem import ExitCode
from dbdyno.result_text import counted

# Maximum seconds to place all engines: a host that has just failed counts as present for some seconds.
PLACE_S_MAX = 60.0
# Maximum seconds until an actor has started. The first one of a job starts a Python interpreter.
ACTOR_S_MAX = 30.0
# Maximum seconds for actors to remove their files.
CLOSE_S_MAX = 1.0
# Maximum seconds for an answer of the head, and to disconnect from the cluster.
HEAD_S_MAX = 5.0
# Calls of one actor at the same time: `read` waits for records while others are answered.
_THREADS = 4
_LOG = logging.getLogger(__name__)


class RayPlace(Place):
    """An engine as an actor."""

    def __init__(self, actor: Any, name: str, host: str) -> None:
        self.actor, self.name, self.host = actor, name, host

    def call(self, method: str, *arguments: object) -> Future[Any]:
        """See `Place`."""
        answer: Future[Any] = getattr(self.actor, method).remote(*arguments).future()
        return answer

    def explain(self, error: Exception) -> str:
        """See `Place`. Errors of Ray name actors by numbers, and have many lines."""
        if isinstance(error, ActorUnavailableError):
            return "its host does not answer Ray"
        if isinstance(error, ActorDiedError):
            return "Ray's process for it has ended, or its host was lost"
        return super().explain(error)


class RayCarrier(Carrier):
    """Connects to a Ray cluster at the first placement."""

    is_local = False

    def __init__(self, address: str, *, pins: bool = True) -> None:
        """`address`: FLEET_AUTO, or HOST:PORT of the cluster's head. `pins`: whether the engines of a host
        have CPUs that Ray's own processes do not use.
        """
        self._address, self._pins = address, pins
        self._places: list[RayPlace] = []
        self._group: Any = None

    def place(self, engines: int, per_host: int) -> Sequence[Place]:
        """See `Carrier`. The hosts are distinct (STRICT_SPREAD)."""
        self.connect()
        deadline, problem = time.monotonic() + PLACE_S_MAX, ""
        while time.monotonic() < deadline:
            try:
                self._places = _limit(PLACE_S_MAX, self._place_once, engines, per_host, deadline)
            except (_NotPlaced, TimeoutError) as error:
                problem = str(error) or "the head of the cluster does not answer"
                self.release()
                time.sleep(1.0)
            else:
                return self._places
        raise FleetProblem(
            f"{engines} engines with at most {per_host} on a host were not placed within {PLACE_S_MAX:g} s: "
            f"{problem}. {self._describe_hosts()}",
            "Add hosts (dbdyno fleet up --join HOST:PORT), raise fleet.per_host, or lower fleet.engines",
        )

    def connect(self) -> None:
        """Connect to the cluster. Raises FleetProblem."""
        if ray.is_initialized():
            return
        try:
            ray.init(
                address=self._address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
        except Exception as error:
            where = "on this machine" if self._address == FLEET_AUTO else f"at {self._address}"
            raise FleetProblem(
                f"no Ray cluster can be used {where}: {str(error).strip().splitlines()[0]}",
                'Start one with dbdyno fleet up, or write address = "local" for processes of this machine',
                ExitCode.NOT_REACHABLE,
            ) from error
        # It prints pages of logs to standard output when a host is lost, whatever `log_to_driver` is.
        ray_worker.print_to_stdstream = _log_message
        # Hosts have no dbdyno: the class goes to them by value.
        ray.cloudpickle.register_pickle_by_value(engine_host)  # type: ignore[no-untyped-call]

    def share(self, content: bytes) -> object:
        """Content that several places need, sent to each host once."""
        return ray.put(content)

    def count_hosts(self) -> int:
        """See `Carrier`."""
        self.connect()
        return len(self._hosts())

    def _hosts(self) -> list[dict[str, Any]]:
        """The hosts that are part of the cluster: address and CPUs."""
        try:
            nodes = [node for node in _limit(HEAD_S_MAX, ray.nodes) if node["Alive"]]
        except TimeoutError:
            return []
        return [
            {"host": node["NodeManagerAddress"], "cpus": node["Resources"].get("CPU", 0.0)} for node in nodes
        ]

    def release(self) -> None:
        """See `Carrier`."""
        closing = [place.call("close") for place in self._places if not place.is_lost]
        # A host that is lost does not answer; what it has left is removed when it is used again.
        wait(closing, CLOSE_S_MAX)
        places, group = self._places, self._group
        self._places, self._group = [], None
        with suppress(TimeoutError):
            _limit(HEAD_S_MAX, _end, places, group)

    def close(self) -> None:
        """See `Carrier`."""
        self.release()
        try:
            _limit(HEAD_S_MAX, ray.shutdown)
        except TimeoutError:
            # The end of this process would wait too.
            atexit.unregister(ray_worker.shutdown)

    def _place_once(self, engines: int, per_host: int, deadline: float) -> list[RayPlace]:
        hosts = -(-engines // per_host)
        self._group = placement_group([{"CPU": min(per_host, engines)}] * hosts, strategy="STRICT_SPREAD")
        left_s = max(0.1, min(10.0, deadline - time.monotonic()))
        if not self._group.wait(left_s):
            raise _NotPlaced("the cluster has no room for them")
        # The stubs of Ray do not know every option of an actor.
        actors: Any = ray
        remote = actors.remote(num_cpus=1, max_restarts=0, max_task_retries=0, max_concurrency=_THREADS)(
            engine_host.EngineHost
        )
        self._places = []
        for index in range(engines):
            strategy = PlacementGroupSchedulingStrategy(
                placement_group=self._group, placement_group_bundle_index=index % hosts
            )
            actor = remote.options(scheduling_strategy=strategy).remote()
            self._places.append(RayPlace(actor, f"engine {index + 1}", ""))
        facts = [(place, place.call("facts")) for place in self._places]
        named = [self._name(place, future, index // hosts) for index, (place, future) in enumerate(facts)]
        # Ray chooses another order of the hosts each time; a trial's segments have the same one.
        return sorted(named, key=lambda place: place.name)

    def _name(self, place: RayPlace, future: Future[Any], number: int) -> RayPlace:
        """The place with the address of its host. `number` counts the engines of a host."""
        try:
            node = future.result(ACTOR_S_MAX)["node"]
            place.call("pin" if self._pins else "unpin").result(ACTOR_S_MAX)
        except TimeoutError:
            raise _NotPlaced(f"{place.name} did not start within {ACTOR_S_MAX:g} s") from None
        except Exception as error:
            raise _NotPlaced(f"{place.name} did not start: {str(error).strip().splitlines()[0]}") from error
        place.host = node
        place.name = f"{node} ({number + 1})" if number else node
        return place

    def _describe_hosts(self) -> str:
        hosts = self._hosts()
        listed = ", ".join(f"{host['host']} with CPUs: {host['cpus']:g}" for host in hosts)
        return (
            f"The cluster has {counted(len(hosts), 'host')}: {listed}"
            if hosts
            else "The cluster has no hosts"
        )


def _limit(seconds: float, function: Callable[..., Any], *arguments: object) -> Any:
    """The result of a function of Ray, which may wait without a limit for the cluster's head or the raylet of
    this machine, for example if they are stopped. Raises TimeoutError.
    """
    result: Future[Any] = Future()

    def call() -> None:
        try:
            result.set_result(function(*arguments))
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return result.result(seconds)


def _end(places: Sequence[RayPlace], group: Any) -> None:
    """End actors, and give back what was reserved for them."""
    for place in places:
        with suppress(Exception):
            ray.kill(place.actor, no_restart=True)
    if group is not None:
        with suppress(Exception):
            remove_placement_group(group)


def _log_message(data: Any, ignore_prefix: bool) -> None:  # noqa: ARG001 — Ray passes it.
    """Log the first line of a message of Ray."""
    _LOG.debug("Ray: %s", "".join(data["lines"]).strip().partition("\n")[0])


class _NotPlaced(Exception):  # noqa: N818 — another attempt follows.
    """An attempt to place the engines failed."""
