"""The models of an experiment, with every default filled in.

`reading` builds them from a TOML file, and the store keeps them as JSON. They are the schema of the file too:
its keys are the aliases of their fields, and types such as `Duration` accept the form that a value has there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from dbdyno.experiment.base import (
    LIMITS,
    CpuList,
    Duration,
    Model,
    format_duration,
    is_in_file,
    parse_cpus,
    parse_percent,
)
from dbdyno.experiment.generators import Keys
from dbdyno.experiment.load import AbortIf, LatencyObjective, Load, Point
from dbdyno.experiment.metrics import (
    CAPACITY,
    LATENCY_P95,
    NAME_PATTERN,
    is_latency,
    metric_key,
    metric_name,
)
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.server import ConnectionSettings, ServerSpec, State, may_be_one_database
from dbdyno.experiment.variant import SessionSettings, VariantData, VariantLoad, VariantSettings
from dbdyno.experiment.workload import (
    NAME,
    Background,
    OltpWorkload,
    ScriptWorkload,
    SqlReplay,
    SqlStatement,
    SqlTable,
    SqlTransaction,
    SqlWorkload,
)
from dbdyno.text import compose

__all__ = [
    "JUDGING_KEYS",
    "NAME",
    "AbortIf",
    "Background",
    "ConnectionSettings",
    "Fleet",
    "Keys",
    "LatencyObjective",
    "Load",
    "Model",
    "OltpName",
    "OltpWorkload",
    "Point",
    "ScriptWorkload",
    "ServerSpec",
    "SessionSettings",
    "SqlReplay",
    "SqlStatement",
    "SqlTable",
    "SqlTransaction",
    "SqlWorkload",
    "State",
    "Stop",
    "VariantData",
    "VariantLoad",
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


MetricName = Annotated[str, AfterValidator(metric_name), Field(json_schema_extra={"pattern": NAME_PATTERN})]


# The limits of `design.stop`. A comparison without it has a fixed number of blocks. One with it runs block
# after block, until the verdict is decided, or an interval is narrow enough, or a limit is reached.
MAX_BLOCKS = 20
MAX_TIME_S = 1_800.0
# No run has more blocks.
BLOCKS_LIMIT = 1_000


_WIDTH = {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$"}
_TABLE = {"type": "object", "additionalProperties": False, "required": ["half_width"]}
# `when` in the file: a table with one key.
_HalfWidth = Annotated[dict[str, str], WithJsonSchema(_TABLE | {"properties": {"half_width": _WIDTH}})]
Percent = Annotated[float, Field(gt=0, lt=100, allow_inf_nan=False)]


def _rule(value: Any, info: ValidationInfo) -> Any:
    """The half width of a rule, or None for the rule "decided"."""
    if not is_in_file(info):
        return value
    if value == "decided":
        return None
    match value:
        case {"half_width": width, **rest} if not rest and (percent := parse_percent(width)) is not None:
            return percent
    raise ValueError('there is no such rule. Write when = "decided" or when = { half_width = "1%" }')


class Stop(Model):
    """The rule by which a comparison ends, and its limits."""

    half_width_percent: Annotated[
        Percent | None, BeforeValidator(_rule, json_schema_input_type=Literal["decided"] | _HalfWidth)
    ] = Field(default=None, json_schema_extra={"default": "decided"})
    """The rule: until every comparison has a verdict, or until every interval is within ± `half_width`."""
    max_blocks: int = Field(default=MAX_BLOCKS, ge=1, le=BLOCKS_LIMIT)
    """Maximum number of blocks."""
    max_time_s: Duration = MAX_TIME_S
    """Maximum time of one call of `compare`; no block begins that is expected to end later, and one that
    still runs then is interrupted."""
    # Without, the looks spend more of the error rate per block.
    top_up: bool = True
    """Blocks may be added after the end; `false` shows the same difference with fewer blocks."""

    def text(self) -> str:
        """The rule as a clause: "until the verdict is decided"."""
        if self.half_width_percent is None:
            return compose("until the verdict is decided")
        return compose("until every interval is within ±{percent:g} %", percent=self.half_width_percent)


class Design(Model):
    """How often and in which order trials run. A block runs every variant once at every point."""

    # With `stop` the largest number of blocks, equal to its max_blocks.
    blocks: int = Field(default=8, ge=1, le=BLOCKS_LIMIT)
    """A fixed number of blocks instead of `stop`; a verdict needs 6, or more for several sentences (P15)."""
    stop: Stop | None = None
    """When the comparison ends; without `blocks` and `stop`, if its verdicts are decided."""
    # Stored runs have the choice. Those without the key are older, and have trials.
    pairing: Literal["auto", "trials", "slices"] = "auto"
    """Variants run one after the other, or alternate in slices; `auto`: slices for bundled reads."""
    slice_s: Duration | None = None
    """Length of a slice: by default 250ms for workloads that read, else 1s, more with many connections."""
    state: State = "restore"
    """What happens to the data before each group."""
    state_per: Literal["block", "group", "trial"] = "group"
    """Start the server with fresh data for each group (a workload's points in a block), for each trial, or
    once in a block for all workloads that load equal tables.
    """
    order: Literal["random", "given"] = "random"
    """Order of the points in a block: random, or as listed in `[load]`."""
    # Part of the key of the cached snapshot.
    seed: int = Field(default=1, ge=0, le=2**63 - 1)
    """Random seed of keys and rows."""
    order_seed: int | None = Field(default=None, ge=0, le=2**53 - 1)
    """Random seed of orders and slots, and of keys over kept data; chosen and stored by the run."""
    # See experiment/repeats.py.
    repeat_disturbed: bool = False
    """Repeat a block that other processes disturbed (D06)."""
    metrics: tuple[MetricName, ...] = ()
    """What is judged: `throughput`, `p99`, `mean`, `cpu_per_transaction` …; the first carries the verdict."""
    delta_percent: Percent | None = None
    """The largest difference that does not matter to you, in percent; the verdict *equivalent* needs it."""
    # The reader inserts the copy as the second variant.
    identical_copy: bool = False
    """Run the baseline twice in each block: a difference within that of the two has no direction."""
    error_rate: Literal["family-wise", "false-discovery"] = "family-wise"
    """What is at most 5 %: the chance of any wrong verdict, or the expected share of wrong ones."""
    max_loss_percent: Percent | None = None
    """The largest loss by the first metric, such as a rise of p95, that `compare` lets pass: `--max-loss`."""

    @field_validator("metrics")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)}: duplicate")
        return names

    @model_validator(mode="after")
    def _at_most(self) -> Design:
        """Set the number of blocks to that of `stop`."""
        if self.stop is not None and self.blocks != self.stop.max_blocks:
            object.__setattr__(self, "blocks", self.stop.max_blocks)
        return self

    @property
    def stop_text(self) -> str:
        """The rule of `stop` as a clause; a gate replaces the verdict."""
        assert self.stop is not None, "the caller has a design with stop"
        if self.max_loss_percent is None or self.stop.half_width_percent is not None:
            return self.stop.text()
        return compose(
            "until it is decided whether the loss is within {percent:g} %", percent=self.max_loss_percent
        )

    @property
    def end_text(self) -> str:
        """When a comparison ends."""
        if self.stop is None:
            return f"{self.blocks} block{'' if self.blocks == 1 else 's'}"
        limit = format_duration(self.stop.max_time_s)
        return f"{self.stop_text}, at most {self.blocks} blocks and {limit} per call"

    @property
    def effective_order_seed(self) -> int:
        """The seed for orders of trials and for slots."""
        return self.seed if self.order_seed is None else self.order_seed

    @property
    def renews_data(self) -> bool:
        """Whether every group begins with fresh data, not with the data that the previous group left."""
        return self.state in {"restore", "reset"}


# Keys of [design] that only decide when a comparison ends and how it is judged.
JUDGING_KEYS = (
    "blocks", "stop", "metrics", "delta_percent", "identical_copy", "error_rate", "max_loss_percent",
)  # fmt: skip


class Loading(Model):
    """How tables are filled. The rows do not depend on these settings."""

    streams: int | None = Field(default=None, ge=1, le=LIMITS["streams"])
    """Connections that load in parallel, by default one per CPU and at most 4."""
    method: Literal["auto", "load-data", "insert"] = "auto"
    """LOAD DATA LOCAL INFILE, INSERT, or `auto`: LOAD DATA if the server allows it."""
    keep: bool = False
    """Keep the loaded data after the run on servers that dbdyno does not start."""


class Client(Model):
    """Where and how the load generator runs."""

    cpus: CpuList | None = None
    """CPUs of the load generator and of dbdyno, as in `"0-3,8"`; by default the last quarter of the CPUs."""
    workers: Literal["auto"] | Annotated[int, Field(ge=1, le=LIMITS["workers"])] = "auto"
    """Event loops of the load generator, one thread each; `auto` determines the number by a pilot."""
    scheduling: Literal["batch", "normal"] | None = None
    """SCHED_BATCH or SCHED_OTHER for the load generator, by default `batch` if it shares CPUs."""


# Addresses of a fleet: processes of this machine, the Ray cluster of this machine.
FLEET_LOCAL, FLEET_AUTO = "local", "auto"
_FLEET_ADDRESS = re.compile(r"(?!ray:)(\[[0-9A-Fa-f:.%]+\]|[\w.-]+):\d{1,5}")


def _fleet_address(text: str) -> str:
    if text not in (FLEET_LOCAL, FLEET_AUTO) and not _FLEET_ADDRESS.fullmatch(text):
        raise ValueError(
            f'an address is "{FLEET_AUTO}", "{FLEET_LOCAL}", or HOST:PORT of the head of a Ray cluster'
        )
    return text


class Fleet(Model):
    """Several load generators that run each trial together, for more load than one host can make."""

    engines: int = Field(ge=1, le=10_000)
    """Load generators; each has an equal share of connections and rate."""
    per_host: int = Field(default=1, ge=1, le=256)
    """The most load generators on one host."""
    address: Annotated[str, AfterValidator(_fleet_address)] = FLEET_AUTO
    """`auto`: the Ray cluster of this machine; HOST:PORT: a Ray cluster's head; `local`: processes here."""


# Maximum number of characters in the name of a variant.
NAME_LENGTH_MAX = 120


class Variant(VariantSettings):
    """One of the things compared; the first variant of an experiment is the baseline."""

    name: str = Field(min_length=1, max_length=NAME_LENGTH_MAX)
    """Name of the variant."""
    server: ServerSpec = Field(default_factory=ServerSpec)
    """The server, by default a private MariaDB with default settings."""
    # Complete workloads, each instead of the one with the same title; in the file a table of changed keys.
    workloads: tuple[_AnyWorkload, ...] = ()
    """Keys of the workloads that differ in this variant; a table under a workload's title is for that one."""
    # Factor -> level, if the variant is a combination of factor levels.
    levels: SkipJsonSchema[dict[str, str]] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a name is printable text without blanks at its ends")
        return name

    @property
    def cpu_sets(self) -> tuple[str | None, ...]:
        """The CPU sets of the server and of a proxy that has its own; None: any CPU."""
        proxy_cpus = self.proxy.cpus if self.proxy is not None else None
        return (self.server.cpus,) if proxy_cpus is None else (self.server.cpus, proxy_cpus)


class Factor(Model):
    """One thing that varies; the variants are all combinations of the levels of all factors."""

    name: str
    # The first level is the baseline.
    levels: tuple[str, ...] = Field(min_length=2)


# The keys of [experiment].
TITLE_KEYS = ("name", "question", "conclusion")


class Experiment(Model):
    """The question and everything needed to answer it."""

    name: str = Field(pattern=NAME)
    """Name of the experiment and its results: letters, digits, dots, dashes and underscores."""
    question: str = ""
    """The question that the experiment answers; shown in the report."""
    conclusion: str = ""
    """What the author concludes from the results, in English or Korean; shown in the report. Check Q02
    compares its sentences with the verdict."""
    workloads: tuple[_AnyWorkload, ...] = Field(min_length=1)
    """The transactions that the load consists of, and their data."""
    load: Load
    """How many connections, when each transaction starts, and for how long."""
    design: Design = Field(default_factory=Design)
    """How often and in which order trials run."""
    client: Client = Field(default_factory=Client)
    """Where and how the load generator runs."""
    loading: Loading = Field(default_factory=Loading)
    """How tables are filled."""
    fleet: Fleet | None = None
    """Several load generators that run each trial together."""
    variants: tuple[Variant, ...] = Field(min_length=1)
    """The things compared; the first is the baseline."""
    # In the order of the file; empty if the file lists its variants.
    factors: tuple[Factor, ...] = ()
    """Things that vary: every combination of their levels becomes a variant."""
    override: dict[str, str] = Field(default_factory=dict)
    """Code of a check -> the reason why the run may continue although this check stops it."""

    @field_validator("*")
    @classmethod
    def _collect(cls, value: Any, info: ValidationInfo) -> Any:
        """Collect the valid values of a file: errors of others do not make these unusable."""
        if info.context is not None:
            info.context[info.field_name] = value
        return value

    @classmethod
    def of_valid(cls, values: Mapping[str, Any]) -> Experiment:
        """The experiment whose valid values are these, by field. The others are neutral, and must not be
        used.
        """
        neutral: dict[str, Any] = {
            "workloads": (),
            "variants": (),
            "load": Load(connections=(1,), duration_s=1.0),
        }
        experiment = cls.model_construct(**neutral | dict(values))
        experiment._set_own_tables()
        return experiment

    @model_validator(mode="after")
    def _a_table_per_connection(self) -> Experiment:
        self._set_own_tables()
        return self

    def _set_own_tables(self) -> None:
        """Set the number of tables of bulk_insert to the highest number of connections, whatever the file
        declares.
        """
        defaults = {"tables": max(self.load.connections), "table_size": 1}
        owners: tuple[Experiment | Variant, ...] = (self, *self.variants)
        for owner in owners:
            workloads = tuple(
                workload.model_copy(update=defaults)
                if isinstance(workload, OltpWorkload) and workload.fills_own_tables
                else workload
                for workload in owner.workloads
            )
            if workloads != owner.workloads:
                object.__setattr__(owner, "workloads", workloads)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The keys of the metrics that are judged; the first is that of the verdict. A rate fixes the
        throughput, so latency is compared if the load is one, and with a latency objective the capacity.
        """
        if self.load.latency_objective is not None:
            return (CAPACITY,)
        return tuple(map(metric_key, self.metric_names))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """The names of these metrics in the file, unless the capacity is judged."""
        return self.design.metrics or (("p95",) if self.load.rate else ("throughput",))

    @property
    def latency_metric(self) -> str:
        """The latency that tables and charts show: the one that is judged, otherwise p95."""
        if self.load.latency_objective is not None:
            return self.load.latency_objective.metric
        return next(filter(is_latency, self.metrics), LATENCY_P95)

    def with_order_seed(self, order_seed: int | None) -> Experiment:
        """The experiment with this order seed, unless its file declares one."""
        return self if self.design.order_seed is not None else self._with_design(order_seed=order_seed)

    def with_max_time(self, max_time_s: float | None) -> Experiment:
        """The experiment with this `stop.max_time_s`, if it has `stop` and the time is given."""
        if self.design.stop is None or max_time_s is None:
            return self
        stop = self.design.stop.model_copy(update={"max_time_s": max_time_s})
        return self._with_design(stop=stop)

    def _with_design(self, **changes: Any) -> Experiment:
        return self.model_copy(update={"design": self.design.model_copy(update=changes)})

    def with_workers_of(self, client: Client) -> Experiment:
        """The experiment with one event loop, if an earlier run has one and no file declares another number:
        one was the default of version 0.2.0.
        """
        if (self.client.workers, client.workers) != ("auto", 1):
            return self
        return self.model_copy(update={"client": self.client.model_copy(update={"workers": 1})})

    def with_pairing_of(self, design: Design) -> Experiment:
        """The experiment with the pairing of an earlier run, unless its file declares one."""
        return self if self.design.pairing != "auto" else self._with_design(pairing=design.pairing)

    def secrets(self) -> frozenset[str]:
        """The environment variables that hold passwords of any variant."""
        named = (variant.server.password_env for variant in self.variants)
        return frozenset(name for name in named if name is not None)

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises KeyError."""
        return {variant.name: variant for variant in self.variants}[name]

    def workload_for(self, variant: Variant, title: str) -> Workload:
        """The workload with that title as the variant runs it. Raises KeyError."""
        workloads: dict[str, Workload] = {
            workload.title: workload for workload in (*self.workloads, *variant.workloads)
        }
        return workloads[title].model_copy(update=variant.session.statement_mode)

    def workloads_of(self, variant: Variant) -> tuple[Workload, ...]:
        """Every workload as the variant runs it, in the order of the file."""
        return tuple(self.workload_for(variant, workload.title) for workload in self.workloads)

    def backgrounds(self, variant: Variant, title: str) -> tuple[Background, ...]:
        """The background loads of the workload with that title as the variant runs them."""
        workload = self.workload_for(variant, title)
        loads = () if isinstance(workload, ScriptWorkload) else workload.background
        return tuple(entry.model_copy(update=variant.session.statement_mode) for entry in loads)

    @property
    def has_background(self) -> bool:
        """Whether any workload has a background load."""
        return any(
            self.backgrounds(variant, workload.title)
            for variant in self.variants
            for workload in self.workloads
        )

    def distinct_workloads(self) -> tuple[Workload, ...]:
        """Every workload that any variant runs, without duplicates."""
        distinct: list[Workload] = []
        for variant in self.variants:
            distinct += [entry for entry in self.workloads_of(variant) if entry not in distinct]
        return tuple(distinct)

    def load_for(self, variant: Variant) -> Load:
        """The load with the keys that the variant changes."""
        changes = variant.load.changes()
        return self.load.model_copy(update=changes) if changes else self.load

    def variants_on_data_of(self, name: str) -> tuple[str, ...]:
        """The other variants that use the data of this one one after the other: on the same database of a
        remote server, without a group that begins with fresh data.
        """
        location = self.variant(name).server.data_location
        if location is None or self.design.renews_data:
            return ()
        locations = {peer.name: peer.server.data_location for peer in self.variants if peer.name != name}
        return tuple(
            peer for peer, where in locations.items() if where and may_be_one_database(location, where)
        )

    @property
    def ties_latency(self) -> bool:
        """Whether throughput determines the mean latency, as in a closed loop with a constant load and no
        pauses: it is the number of connections divided by the throughput.
        """
        has_pauses = any(self.load_for(variant).think_time_s for variant in self.variants) or any(
            isinstance(workload, SqlWorkload) and workload.has_pauses
            for workload in self.distinct_workloads()
        )
        return not (self.load.has_set_rate or self.load.is_changing or has_pauses)

    def shares_cpus(self, variant: Variant) -> bool:
        """Whether the load generator and that variant's server, or its proxy, may run on the same CPU."""
        if self.client.cpus is None:
            return True
        client_cpus = parse_cpus(self.client.cpus)
        return any(cpus is None or client_cpus & parse_cpus(cpus) for cpus in variant.cpu_sets)
