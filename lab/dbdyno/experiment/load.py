"""The load of an experiment: its points (connections or rates), its shape over time, and its limits: the
latency objective for which the capacity is judged, and what ends at once a load on a server that others use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from dbdyno.experiment.base import LIMITS, Duration, DurationOrZero, LatencyLimit, Model
from dbdyno.experiment.metrics import percentile_of
from dbdyno.experiment.shapes import Shapes
from dbdyno.text import compose

Connections = Annotated[int, Field(ge=1, le=LIMITS["connections"])]
Rate = Annotated[float, Field(gt=0, le=LIMITS["rate_per_s"], allow_inf_nan=False)]


def _seconds_or_auto(value: Any) -> Any:
    return None if value == "auto" else value


# The rates of a latency objective without `rate`, as shares of the weaker variant's highest throughput.
SHARES = tuple(round(0.5 * 2.1 ** (step / 7.0), 4) for step in range(8))
Percentile = Literal[
    "latency_p50_us", "latency_p90_us", "latency_p95_us", "latency_p99_us", "latency_p999_us"
]
_FIGURES: dict[str, Percentile] = {arg.split("_")[1]: arg for arg in get_args(Percentile)}


class Percentiles(Model):
    """Percentiles of latency and their limits."""

    p50_s: LatencyLimit | None = None
    """The median latency stays below this time."""
    p90_s: LatencyLimit | None = None
    """The 90th percentile of latency stays below this time."""
    p95_s: LatencyLimit | None = None
    """The 95th percentile of latency stays below this time."""
    p99_s: LatencyLimit | None = None
    """The 99th percentile of latency stays below this time."""
    p999_s: LatencyLimit | None = None
    """The 99.9th percentile of latency stays below this time."""

    def limits_s(self) -> list[tuple[str, float]]:
        """The names of the percentiles that have a limit, with that in seconds."""
        values = ((name, getattr(self, f"{name}_s")) for name in _FIGURES)
        return [(name, value) for name, value in values if value is not None]


def percent_of(name: str) -> float:
    """The percentage of a percentile's name: 99.9 for p999."""
    percent = percentile_of(_FIGURES[name])
    assert percent is not None, "the figure is a percentile"
    return percent


class LatencyObjective(Percentiles):
    """`[load] latency_objective`: one percentile of latency and its limit."""

    @model_validator(mode="after")
    def _one(self) -> LatencyObjective:
        if len(self.limits_s()) != 1:
            raise ValueError('a latency objective is one percentile and its limit: { p99 = "20ms" }')
        return self

    @property
    def limit_s(self) -> float:
        """The limit in seconds."""
        return self.limits_s()[0][1]

    @property
    def limit_us(self) -> float:
        """The limit in microseconds, the unit of the figures."""
        return self.limit_s * 1e6

    @property
    def metric(self) -> Percentile:
        """The figure that must stay below the limit."""
        return _FIGURES[self.limits_s()[0][0]]

    @property
    def percentile(self) -> str:
        """Its name in sentences: "p99", "p99.9"."""
        return self.limits_s()[0][0].replace("p999", "p99.9")

    @property
    def share_beyond(self) -> float:
        """The share of the transactions that may take longer than the limit."""
        return round(1.0 - percent_of(self.limits_s()[0][0]) / 100.0, 6)

    def text(self) -> str:
        """The objective as a clause: "p99 latency stays below 20 ms"."""
        limit_s = self.limit_s
        limit = f"{limit_s:g} s" if limit_s >= 1.0 else f"{limit_s * 1e3:g} ms"
        return compose("{percentile} latency stays below {limit}", percentile=self.percentile, limit=limit)


def rate_text(rate: float) -> str:
    """A rate or capacity as text, without the unit: 1,234, 56.7, 0.89."""
    return f"{rate:,.0f}" if rate >= 100.0 else f"{rate:.3g}"


def found_rates(peak: float) -> list[float]:
    """The rates to measure if the weaker variant reaches at most `peak` transactions/s."""
    return [float(f"{share * peak:.3g}") for share in SHARES]


class AbortIf(Percentiles):
    """`[load] abort_if`: the load ends within a second when one of these limits is exceeded."""

    errors_per_1000: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The most errors per 1,000 transactions."""

    @model_validator(mode="after")
    def _some(self) -> AbortIf:
        if not self.limits_s() and self.errors_per_1000 is None:
            raise ValueError('abort_if is at least one limit: { p99 = "500ms", errors_per_1000 = 10 }')
        return self

    def latency_limits(self) -> list[tuple[float, float]]:
        """The percentiles, such as 99.9, with their limits in seconds."""
        return [(percent_of(name), limit_s) for name, limit_s in self.limits_s()]


def parse_abort_if(text: str) -> dict[str, str | float]:
    """The table of a text such as "p99=500ms,errors_per_1000=10". Raises ValueError."""
    table: dict[str, str | float] = {}
    for part in text.split(","):
        name, equals, value = (entry.strip() for entry in part.partition("="))
        if not equals or not name or not value:
            raise ValueError(f"{part!r} is not a limit: write p99=500ms or errors_per_1000=10")
        if name in table:
            raise ValueError(f"{name} is there twice: keep one")
        try:
            table[name] = float(value) if name == "errors_per_1000" else value
        except ValueError:
            raise ValueError(f"errors_per_1000={value}: this is not a number") from None
    return table


class Point(Model):
    """One load level: connections in a closed loop; in an open loop a rate, and the maximum number of busy
    connections.
    """

    connections: Connections
    rate: Rate | None = None

    def as_dict(self) -> dict[str, int | float]:
        """The point as in `verdict.json` and `trial.json`: {"connections": n} or {"rate": r}."""
        return {"connections": self.connections} if self.rate is None else {"rate": self.rate}

    @property
    def level(self) -> float:
        """What distinguishes it from the other points: the rate, or the number of connections."""
        return self.connections if self.rate is None else self.rate


class Load(Shapes):
    """How many connections, when each transaction starts, and for how long."""

    connections: tuple[Connections, ...] = Field(min_length=1)
    """Numbers of connections, one point each; with `rate` one number, the maximum of busy connections."""
    rate: tuple[Rate, ...] = ()
    """Rates in transactions per second, one point each; the load is then an open loop."""
    latency_objective: LatencyObjective | None = None
    """Judge the capacity: the highest rate with this latency. Without `rate`, a probe finds 8 rates."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Open loop: the intervals between scheduled starts are random (`poisson`) or `constant`."""
    think_time_s: Duration | None = None
    """Closed loop: the pause of a connection between two transactions; no latency includes it."""
    think: Literal["constant", "exponential"] = "constant"
    """Distribution of the pause: `constant`, or `exponential` with `think_time` as the mean."""
    queue_limit: int | None = Field(default=None, ge=0, le=2**32 - 1)
    """Open loop: how many transactions may wait for a connection; further ones are dropped and counted."""
    duration_s: Duration
    """Measured time of each trial, at least 500ms."""
    # None is "auto": the engine warms up for `warmup_allowance_s`, and `judge` then discards the rest of the
    # warm-up.
    warmup_s: Annotated[
        DurationOrZero | None,
        BeforeValidator(_seconds_or_auto, json_schema_input_type=Literal["auto"] | DurationOrZero),
    ] = Field(default=None, json_schema_extra={"default": "auto"})
    """Warm-up before the measurement of each trial; `auto`: until throughput is steady."""
    prewarm: Literal["none", "scan"] = "none"
    """`scan` reads every table and every index completely before each trial."""
    transport: Literal["tcp", "unix"] = "tcp"
    """Connect over TCP, or over a unix socket."""
    reconnect_every: int = Field(default=0, ge=0, le=2**32 - 1)
    """Number of transactions after which a connection is closed and opened again; 0 for never."""
    on_lost: Literal["reconnect", "stop"] = "reconnect"
    """When a connection is lost: open it again and count the error, or end the trial."""
    give_up_s: DurationOrZero = 30.0
    """Reconnect timeout, after which the trial ends."""
    answer_timeout_s: Duration = 60.0
    """Longest wait of a connection for the answer to a statement; after it the trial ends, as failed."""
    max_rate: float | None = Field(default=None, ge=0.01, le=LIMITS["rate_per_s"], allow_inf_nan=False)
    """The most transactions per second of a trial, on a server that others use too."""
    writes: Literal["refuse", "skip", "replay"] = "refuse"
    """Statements that write to tables that dbdyno has not created, on servers that it does not start:
    `refuse` the run, `skip` those of a recorded log, or execute (`replay`) them.
    """
    abort_if: AbortIf | None = None
    """Limits of latency and errors; the run ends within a second when the load exceeds one."""

    # The rates that the probe of a latency objective has found; the run stores them.
    _found: tuple[float, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _goes_together(self) -> Load:
        if problems := list(self._problems()):
            raise ValueError("; also: ".join(problems))
        return self

    def _problems(self) -> Iterator[str]:
        """What is wrong with the keys together."""
        what, shapes = "rates" if self.rate else "a latency objective", self.chosen_shapes()
        if self.is_open and len(self.connections) != 1:
            yield f"with {what}, connections is the maximum number of busy connections: write one number"
        if self.latency_objective is not None and shapes:
            yield f"a latency objective needs a constant load: leave out {', '.join(shapes)}"
        if self.latency_objective is not None and len(self.rate) == 1:
            yield "the capacity under a latency objective lies between rates: give several, or leave rate out"
        if self.is_open and self.think_time_s is not None:
            yield f"think_time is for closed loops: with {what}, transactions start at scheduled times"
        if not self.is_open and self.queue_limit is not None:
            yield "queue_limit is for open loops: give a rate, or leave it out"
        if self.is_open and self.max_rate is not None:
            yield (
                "max_rate is for closed loops: with rates or a latency objective, transactions that a stall "
                "of the server has delayed begin at once; leave max_rate out, and limit connections"
            )
        if len(shapes) > 1:
            yield f"{' and '.join(shapes)} exclude each other: keep one of them"
        for shape in shapes.values():
            highest = max(shape.percents())
            if not self.rate and highest > 100:
                yield "in a closed loop the maximum is 100 percent, all connections"
            if self.rate and max(self.rate) * highest / 100 > LIMITS["rate_per_s"]:
                yield (
                    f"the load changes to {highest:g} % of {max(self.rate):g} transactions/s: at most "
                    f"{LIMITS['rate_per_s']:,} transactions/s are possible"
                )
            # The load generator takes whole connections.
            idle = [] if self.is_open else [n for n in self.connections if round(n * highest / 100) == 0]
            if idle:
                yield (
                    f"{highest:g} % of {min(idle)} connections is no connection: give percentages of at "
                    f"least {100 / min(idle):g}, or more connections"
                )
            if shape.length_s > self.duration_s:
                yield (
                    f"the load changes for {shape.length_s:g} s and is measured for {self.duration_s:g} s: "
                    "give a longer duration"
                )

    @field_validator("connections", "rate")
    @classmethod
    def _each_once(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ValueError(f"{', '.join(f'{value:g}' for value in twice)}: duplicate")
        return values

    @property
    def is_open(self) -> bool:
        """Whether transactions start at scheduled times: the load is a rate, or a latency objective finds the
        rates.
        """
        return bool(self.rate or self.latency_objective)

    @property
    def has_set_rate(self) -> bool:
        """Whether the load may decide the throughput: by a rate, or by the limit of one."""
        return self.is_open or self.max_rate is not None

    @property
    def has_timers(self) -> bool:
        """Whether timers decide when transactions start: by a rate, the limit of one, or think time."""
        return self.has_set_rate or self.think_time_s is not None

    @property
    def needs_probe(self) -> bool:
        """Whether a probe finds the rates."""
        return self.latency_objective is not None and not self.rate

    @property
    def has_rates(self) -> bool:
        """Whether the rates of an open loop are known."""
        return bool(self.rate or self._found)

    def set_found_rates(self, rates: tuple[float, ...]) -> None:
        """Use the rates that the probe has found, from now on."""
        self._found = rates

    @property
    def is_changing(self) -> bool:
        """Whether the load changes during the measurement, so that throughput has no steady state."""
        return self.shape is not None

    @property
    def has_auto_warmup(self) -> bool:
        """Whether the end of the warm-up is detected from the throughput."""
        return self.warmup_s is None and not self.is_changing

    def points(self) -> tuple[Point, ...]:
        """The load levels in the order of the file. Before a probe has found the rates of a latency objective
        they are shares of the highest throughput.
        """
        if self.is_open:
            rates = self.rate or self._found or SHARES
            return tuple(Point(connections=self.connections[0], rate=rate) for rate in rates)
        return tuple(Point(connections=connections) for connections in self.connections)

    def warmup_allowance_s(self) -> float:
        """Seconds that the engine warms up. For "auto" this is the length of the measurement, but at least 5
        s and at most 60 s.
        """
        return min(max(self.duration_s, 5.0), 60.0) if self.warmup_s is None else self.warmup_s
