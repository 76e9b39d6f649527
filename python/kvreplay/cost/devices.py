"""GPUs: dense peak rates, memory and the link to their host."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

from kvreplay.cost import data, rates
from kvreplay.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl


_HINT = "a GPU's rates and memory are finite and positive"
# fp8 runs at twice the 16-bit rate; some data sheets round the two apart.
_MOST_FP8 = 2.1


@dataclass(frozen=True)
class Hardware:
    """A GPU.

    Parameters
    ----------
    name
        Name in the catalogue.
    bf16_tflops, fp8_tflops
        Dense peak rates in 10^12 operations per second; ``None`` where the GPU lacks it or nobody says.
    hbm_gb_s
        Memory bandwidth, 10^9 bytes per second.
    memory_bytes
        Memory.
    host_link
        Name of its link to the host.
    nic_gb_s
        Network bandwidth per GPU in usual hosts, 10^9 bytes per second and direction.
    source, date
        Where the numbers come from and when.

    Raises
    ------
    ConfigError
        For a rate that cannot be, or one that is the figure with sparsity.
    """

    name: str
    bf16_tflops: float
    fp8_tflops: float | None
    hbm_gb_s: float
    memory_bytes: int
    host_link: str
    nic_gb_s: float | None = None
    source: str = "given"
    date: str = ""

    def __post_init__(self) -> None:
        what = f"of hardware {self.name}"
        for field in ("bf16_tflops", "hbm_gb_s", "memory_bytes"):
            rates.finite(getattr(self, field), what=f"{field} {what}", hint=_HINT, least=1e-3, most=1e15)
        for field in ("fp8_tflops", "nic_gb_s"):
            if getattr(self, field) is not None:
                rates.finite(getattr(self, field), what=f"{field} {what}", hint=_HINT, least=1e-3, most=1e15)
        if self.fp8_tflops is not None and self.fp8_tflops > _MOST_FP8 * self.bf16_tflops:
            raise ConfigError(
                f"fp8_tflops {what} is {self.fp8_tflops:g}, more than twice bf16's {self.bf16_tflops:g}",
                hint="give the dense figure: data sheets print the one with sparsity, twice as high",
            )
        data.canonical(self.host_link, of="links", what="link")


@overload
def hardware() -> pl.DataFrame: ...
@overload
def hardware(name: str | Hardware) -> Hardware: ...
def hardware(name: str | Hardware | None = None) -> pl.DataFrame | Hardware:
    """All GPUs of the catalogue as a table, or one of them.

    Parameters
    ----------
    name
        A name of the table; a :class:`Hardware` is returned as it is.

    Returns
    -------
    pl.DataFrame or Hardware
        The table has ``name``, ``bf16_tflops``, ``fp8_tflops`` (dense, 10^12/s), ``hbm_gb_s``,
        ``memory_bytes``, ``host_link``, ``nic_gb_s``, ``source``, ``date``.

    Raises
    ------
    ConfigError
        For an unknown name.

    Examples
    --------
    >>> import kvreplay as kv
    >>> kv.hardware("h100-sxm").bf16_tflops
    989.0
    """
    if isinstance(name, Hardware):
        return name
    if name is not None:
        known = data.canonical(str(name), of="hardware", what="hardware")
        return _of(known, data.catalogue("hardware")[known])
    import polars as pl

    schema: dict[str, Any] = {
        "name": pl.String,
        "bf16_tflops": pl.Float64,
        "fp8_tflops": pl.Float64,
        "hbm_gb_s": pl.Float64,
        "memory_bytes": pl.Int64,
        "host_link": pl.String,
        "nic_gb_s": pl.Float64,
        "source": pl.String,
        "date": pl.String,
    }
    rows = [asdict(_of(one, values)) for one, values in data.catalogue("hardware").items()]
    return pl.DataFrame(rows, schema=schema, orient="row").sort("name")


def _of(name: str, values: dict[str, Any]) -> Hardware:
    return Hardware(
        name=name,
        bf16_tflops=values["bf16_tflops"],
        fp8_tflops=values.get("fp8_tflops"),
        hbm_gb_s=values["hbm_gb_s"],
        memory_bytes=values["memory_bytes"],
        host_link=values["host_link"],
        nic_gb_s=values.get("nic_gb_s"),
        source=values["source"],
        date=values["date"],
    )
