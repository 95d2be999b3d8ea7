"""The models of an experiment, with every default filled in.

`reading` builds them from a TOML file, and the store keeps them as JSON. Their fields have the names of the
keys in the file; fields with a time end in `_s`, for seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from dbdyno.experiment.base import DURATION_S_MAX, CpuList, Duration, Model
from dbdyno.experiment.cpus import parse_cpus
from dbdyno.experiment.limits import LIMITS
from dbdyno.experiment.oltp import Keys, OltpName, OltpWorkload
from dbdyno.experiment.script_workload import ScriptWorkload
from dbdyno.experiment.server import ConnectionSettings, ServerSpec, State
from dbdyno.experiment.shapes import Shapes
from dbdyno.experiment.sql_workload import SqlReplay, SqlStatement, SqlTable, SqlTransaction, SqlWorkload
from dbdyno.experiment.stop import Stop
from dbdyno.experiment.workload import NAME

__all__ = [
    "NAME",
    "ConnectionSettings",
    "Keys",
    "Model",
    "OltpName",
    "OltpWorkload",
    "ScriptWorkload",
    "ServerSpec",
    "SqlReplay",
    "SqlStatement",
    "SqlTable",
    "SqlTransaction",
    "SqlWorkload",
    "State",
    "Stop",
]

Workload = OltpWorkload | SqlWorkload | ScriptWorkload


def _family(value: Any) -> str:
    """The kind of a workload, given as a table or as a model."""
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    return str(name) if name in ("sql", "lua") else "oltp"


_AnyWorkload = Annotated[
    Annotated[OltpWorkload, Tag("oltp")]
    | Annotated[SqlWorkload, Tag("sql")]
    | Annotated[ScriptWorkload, Tag("lua")],
    Discriminator(_family),
]

Connections = Annotated[int, Field(ge=1, le=LIMITS["connections"])]
Rate = Annotated[float, Field(gt=0, le=LIMITS["rate_per_s"], allow_inf_nan=False)]


class Point(Model):
    """One load level: connections in a closed loop; in an open loop a rate, and the maximum number of busy
    connections.
    """

    connections: Connections
    rate: Rate | None = None

    def as_dict(self) -> dict[str, int | float]:
        """The point as in `verdict.json` and `trial.json`: {"connections": n} or {"rate": r}."""
        return {"connections": self.connections} if self.rate is None else {"rate": self.rate}


class Load(Shapes):
    """How many connections, when each transaction starts, and for how long."""

    connections: tuple[Connections, ...] = Field(min_length=1)
    rate: tuple[Rate, ...] = ()
    arrivals: Literal["poisson", "constant"] = "poisson"
    # Closed loop: the pause of a connection between two transactions, and the distribution of pauses.
    think_time_s: Duration | None = None
    think: Literal["constant", "exponential"] = "constant"
    # Open loop: maximum number of transactions that wait for a connection; None: no limit.
    queue_limit: int | None = Field(default=None, ge=0, le=2**32 - 1)
    duration_s: Duration
    # None is "auto": the engine warms up for `warmup_allowance_s`, and `judge` then discards the rest of the
    # warm-up.
    warmup_s: float | None = Field(default=None, ge=0, le=DURATION_S_MAX)
    # "scan": read all tables and indexes before each trial.
    prewarm: Literal["none", "scan"] = "none"
    transport: Literal["tcp", "unix"] = "tcp"
    # Number of transactions after which a connection is closed and reopened; 0 for never.
    reconnect_every: int = Field(default=0, ge=0, le=2**32 - 1)
    # After a lost connection: reconnect for at most `give_up_s`, or end the trial.
    on_lost: Literal["reconnect", "stop"] = "reconnect"
    give_up_s: float = Field(default=30.0, ge=0, le=DURATION_S_MAX)

    @model_validator(mode="after")
    def _one_cap(self) -> Load:
        if self.rate and len(self.connections) != 1:
            raise ValueError(
                "with rates, connections is the maximum number of busy connections: write one number"
            )
        return self

    @model_validator(mode="after")
    def _one_loop(self) -> Load:
        if self.rate and self.think_time_s is not None:
            raise ValueError(
                "think_time is for closed loops: with rates, transactions start at scheduled times"
            )
        if not self.rate and self.queue_limit is not None:
            raise ValueError("queue_limit is for open loops: give a rate, or leave it out")
        return self

    @model_validator(mode="after")
    def _one_change(self) -> Load:
        shapes = self.chosen_shapes()
        if len(shapes) > 1:
            raise ValueError(f"{' and '.join(shapes)} exclude each other: keep one of them")
        for shape in shapes.values():
            highest = max(shape.percents())
            if not self.rate and highest > 100:
                raise ValueError("in a closed loop the maximum is 100 percent, all connections")
            if self.rate and max(self.rate) * highest / 100 > LIMITS["rate_per_s"]:
                raise ValueError(
                    f"the load changes to more than {LIMITS['rate_per_s']} transactions per second"
                )
            if shape.length_s > self.duration_s:
                raise ValueError(
                    f"the load changes for {shape.length_s:g} s and is measured for {self.duration_s:g} s: "
                    "give a longer duration"
                )
        return self

    @field_validator("connections", "rate")
    @classmethod
    def _each_once(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ValueError(f"{', '.join(f'{value:g}' for value in twice)}: duplicate")
        return values

    @property
    def is_changing(self) -> bool:
        """Whether the load changes during the measurement, so that throughput has no steady state."""
        return self.shape is not None

    @property
    def has_auto_warmup(self) -> bool:
        """Whether the end of the warm-up is detected from the throughput."""
        return self.warmup_s is None and not self.is_changing

    def points(self) -> tuple[Point, ...]:
        """The load levels in the order of the file."""
        if self.rate:
            return tuple(Point(connections=self.connections[0], rate=rate) for rate in self.rate)
        return tuple(Point(connections=connections) for connections in self.connections)

    def warmup_allowance_s(self) -> float:
        """Seconds that the engine warms up. For "auto" this is the length of the measurement, but at least 5
        s and at most 60 s.
        """
        return min(max(self.duration_s, 5.0), 60.0) if self.warmup_s is None else self.warmup_s


class Design(Model):
    """How often and in which order trials run. A block runs every variant once at every point."""

    # With `stop` the largest number of blocks, equal to its max_blocks.
    blocks: int = Field(default=8, ge=1, le=1_000)
    # When the comparison ends; None: after `blocks` blocks.
    stop: Stop | None = None
    state: State = "restore"
    state_per: Literal["group", "trial"] = "group"
    # Order of the points in a block; "given" is the order of the list, as in a sweep.
    order: Literal["random", "given"] = "random"
    # Seed of rows and keys; part of the key of the cached snapshot.
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    # Seed of the order of trials and of the slots of servers. None: chosen when a comparison begins, and
    # stored.
    order_seed: int | None = Field(default=None, ge=0, le=2**53 - 1)
    # Repeat a block with foreign load once at the end of the run; see experiment/repeats.py.
    repeat_disturbed: bool = True
    # Differences within ±delta are equivalent; None: the verdict is never "equivalent".
    delta_percent: float | None = Field(default=None, gt=0, lt=100, allow_inf_nan=False)

    @model_validator(mode="after")
    def _at_most(self) -> Design:
        """Set the number of blocks to that of `stop`."""
        if self.stop is not None and self.blocks != self.stop.max_blocks:
            object.__setattr__(self, "blocks", self.stop.max_blocks)
        return self

    @property
    def effective_order_seed(self) -> int:
        """The seed for orders of trials and for slots."""
        return self.seed if self.order_seed is None else self.order_seed

    @property
    def renews_data(self) -> bool:
        """Whether every group begins with fresh data, not with the data that the previous group left."""
        return self.state in {"restore", "reset"}


class Loading(Model):
    """How tables are filled. The rows do not depend on these settings."""

    # Connections that load at the same time. None: as many as CPUs, at most 4.
    streams: int | None = Field(default=None, ge=1, le=LIMITS["streams"])
    method: Literal["auto", "load-data", "insert"] = "auto"
    # Whether loaded tables stay on a remote server after the run.
    keep: bool = False


class Client(Model):
    """Where and how the load generator runs."""

    cpus: CpuList | None = None
    workers: int = Field(default=1, ge=1, le=LIMITS["workers"])
    # None: "batch" if client and server share CPUs in a closed loop, else "normal".
    scheduling: Literal["batch", "normal"] | None = None


class Variant(Model):
    """One of the things compared; the first variant of an experiment is the baseline."""

    name: str = Field(min_length=1, max_length=120)
    server: ServerSpec = Field(default_factory=ServerSpec)
    # Factor -> level, if the variant is a combination of factor levels.
    levels: dict[str, str] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a name is printable text without blanks at its ends")
        return name


class Factor(Model):
    """One thing that varies; the variants are all combinations of the levels of all factors."""

    name: str
    # The first level is the baseline.
    levels: tuple[str, ...] = Field(min_length=2)


class Experiment(Model):
    """The question and everything needed to answer it."""

    name: str = Field(pattern=NAME)
    question: str = ""
    workloads: tuple[_AnyWorkload, ...] = Field(min_length=1)
    load: Load
    design: Design = Field(default_factory=Design)
    client: Client = Field(default_factory=Client)
    loading: Loading = Field(default_factory=Loading)
    variants: tuple[Variant, ...] = Field(min_length=1)
    # In the order of the file; empty if the file lists its variants.
    factors: tuple[Factor, ...] = ()
    # Code of a check -> the reason why the run may continue after a stop of this check.
    override: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _a_table_per_connection(self) -> Experiment:
        """Set the number of tables of bulk_insert to the highest number of connections, whatever the file
        declares.
        """
        own = {"tables": max(self.load.connections), "table_size": 1}
        workloads = tuple(
            workload.model_copy(update=own)
            if isinstance(workload, OltpWorkload) and workload.fills_own_tables
            else workload
            for workload in self.workloads
        )
        if workloads != self.workloads:
            object.__setattr__(self, "workloads", workloads)
        return self

    def with_order_seed(self, order_seed: int | None) -> Experiment:
        """The experiment with this order seed, unless its file declares one."""
        if self.design.order_seed is not None:
            return self
        return self.model_copy(update={"design": self.design.model_copy(update={"order_seed": order_seed})})

    def secrets(self) -> frozenset[str]:
        """The environment variables that hold passwords of any variant."""
        named = (variant.server.password_env for variant in self.variants)
        return frozenset(name for name in named if name is not None)

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises KeyError."""
        return {variant.name: variant for variant in self.variants}[name]

    def workload(self, title: str) -> Workload:
        """The workload with that title. Raises KeyError."""
        return {workload.title: workload for workload in self.workloads}[title]

    def shares_cpus(self, variant: Variant) -> bool:
        """Whether the load generator and that variant's server may run on the same CPU."""
        if self.client.cpus is None or variant.server.cpus is None:
            return True
        return bool(parse_cpus(self.client.cpus) & parse_cpus(variant.server.cpus))
