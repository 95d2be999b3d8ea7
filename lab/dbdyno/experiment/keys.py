"""The distributions of keys, as sysbench names them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from dbdyno.experiment.base import Model


class Keys(Model):
    """Which rows are accessed: sysbench's distributions, with its parameters and their defaults."""

    distribution: Literal["uniform", "gaussian", "special", "pareto", "zipfian", "nurand"] = "uniform"
    """Name of the distribution."""
    iterations: int = Field(default=12, ge=1, le=1000)
    """gaussian, special: how many uniform numbers are averaged to give the bell curve."""
    percent: int = Field(default=1, ge=0, le=100)
    """special: width of the hot range, in percent of the rows."""
    hot_percent: int = Field(default=75, ge=0, le=100)
    """special: share of the accesses that the hot range gets, in percent."""
    h: float = Field(default=0.2, gt=0, lt=1)
    """pareto: a fraction h of the rows gets a fraction 1 - h of the accesses."""
    exponent: float = Field(default=0.8, ge=0, le=100)
    """zipfian: row k is chosen in proportion to 1 / k^exponent."""
    scattered: bool = False
    """zipfian: the hottest rows are scattered over the table, as in YCSB, instead of its first ones."""

    a: int = Field(default=8191, ge=0, le=2**40)
    """nurand (TPC-C): largest number that is combined with a uniform one by a bitwise OR."""
    c: int = Field(default=0, ge=0, le=2**40)
    """nurand: a constant that moves the frequent values, at most `a`."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"distribution": value} if isinstance(value, str) else value

    def plan(self) -> str | dict[str, Any]:
        """The `workload.keys` of an engine plan: the distribution with its own parameters only."""
        names = _KEY_PARAMETERS[self.distribution]
        if not names:
            return "uniform"
        # Plans and data of older versions, which do not know this key, stay as they were.
        scattered = {"scattered": True} if self.distribution == "zipfian" and self.scattered else {}
        return {self.distribution: {name: getattr(self, name) for name in names} | scattered}


_KEY_PARAMETERS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "gaussian": ("iterations",),
    "special": ("iterations", "percent", "hot_percent"),
    "pareto": ("h",),
    "zipfian": ("exponent",),
    "nurand": ("a", "c"),
}
