"""Money: what saved time is worth, what keeping and writing KV costs, and how long keeping pays.

The five-minute rule (Gray and Putzolu, 1987) for KV: bytes that will be used again are worth keeping for the
time ``T* = GPU price * time saved by one use / rent of the bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any

from kvreplay.cost import data, rates
from kvreplay.errors import ConfigError, unknown

if TYPE_CHECKING:
    import polars as pl

HOUR_US = 3.6e9
DAY_US = 24 * HOUR_US
# 365.25 days: 36 months are 3 of these.
YEAR_US = 365.25 * DAY_US
_ENTRIES = {
    "dram_gb_usd": "dram-gb",
    "dram_years": "dram-years",
    "ssd_gb_usd": "ssd-gb",
    "ssd_years": "ssd-years",
    "ssd_dwpd": "ssd-dwpd",
    "ssd_waf": "ssd-waf",
}
_HINT = "a price or a life is a finite number, not negative"


@dataclass(frozen=True)
class Prices:
    """Prices that a report uses. Made by :func:`prices`.

    Parameters
    ----------
    gpu_hour_usd
        USD per GPU and hour; ``None`` where no GPU was named.
    dram_gb_usd, ssd_gb_usd
        USD per 10^9 bytes of memory or drive.
    dram_years, ssd_years
        Years over which they are written off; for drives also the warranty.
    ssd_dwpd
        Drive writes per day of the warranty.
    ssd_waf
        Bytes written to flash per byte written.
    used
        Every number with its source and date, one line each.
    """

    gpu_hour_usd: float | None
    dram_gb_usd: float
    dram_years: float
    ssd_gb_usd: float
    ssd_years: float
    ssd_dwpd: float
    ssd_waf: float
    used: tuple[str, ...] = ()

    @property
    def gpu_us_usd(self) -> float:
        """USD per microsecond of a GPU.

        Raises
        ------
        ConfigError
            When no GPU price is known.
        """
        if self.gpu_hour_usd is None:
            raise ConfigError("no price of a GPU-hour is known", hint="give gpu_hour_usd=2.95")
        return self.gpu_hour_usd / HOUR_US

    def rent(self, medium: str) -> float:
        """USD per byte and microsecond of ``dram`` or ``ssd``."""
        if medium == "dram":
            return rent(self.dram_gb_usd, self.dram_years)
        if medium == "ssd":
            return rent(self.ssd_gb_usd, self.ssd_years)
        raise unknown("medium", medium, ["dram", "ssd"])


def prices(hardware: str | None = None, **overrides: float | None) -> Prices:
    """Prices of the catalogue, with your own in place of any of them.

    Parameters
    ----------
    hardware
        The GPU whose hour is priced.
    overrides
        Fields of :class:`Prices`: ``gpu_hour_usd=2.10``, ``dram_gb_usd=5``, ``ssd_dwpd=3``. ``None`` keeps
        the catalogue's.

    Raises
    ------
    ConfigError
        For an unknown name or a value that is no price.

    Examples
    --------
    >>> from kvreplay.cost.money import prices
    >>> prices("h100-sxm", dram_gb_usd=5).gpu_hour_usd
    2.95
    """
    known = [field.name for field in fields(Prices) if field.name != "used"]
    for name in overrides:
        if name not in known:
            raise unknown("price", name, known)
    values: dict[str, Any] = {}
    used: list[str] = []
    entries = dict(_ENTRIES)
    if hardware is not None:
        entries["gpu_hour_usd"] = f"gpu-hour-{data.canonical(hardware, of='hardware', what='hardware')}"
    for field in known:
        given = overrides.get(field)
        if given is not None:
            least = 1e-6 if field in {"dram_years", "ssd_years", "ssd_dwpd", "ssd_waf"} else 0.0
            values[field] = rates.finite(given, what=field, hint=_HINT, least=least, most=1e9)
            used.append(f"{field} = {values[field]:g}: given")
            continue
        entry = data.catalogue("prices").get(entries.get(field, ""))
        values[field] = None if entry is None else float(entry["value"])
        if entry is not None:
            used.append(f"{field} = {entry['value']:g} ({entry['unit']}): {entry['source']}, {entry['date']}")
    return Prices(**values, used=tuple(used))


def price_list() -> pl.DataFrame:
    """The catalogue of prices: ``name``, ``value``, ``low``, ``high``, ``unit``, ``source``, ``date``."""
    import polars as pl

    schema: dict[str, Any] = {
        "name": pl.String,
        "value": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "unit": pl.String,
        "source": pl.String,
        "date": pl.String,
    }
    rows = [{"name": name, **values} for name, values in data.catalogue("prices").items()]
    full = [{key: row.get(key) for key in schema} for row in rows]
    return pl.DataFrame(full, schema=schema, orient="row").sort("name")


def rent(usd_per_gb: float, years: float) -> float:
    """USD per byte and microsecond of something bought at `usd_per_gb` and written off over `years`."""
    return usd_per_gb / 1e9 / (years * YEAR_US)


def residency_us(saved_us: float, size_bytes: float, *, gpu_us_usd: float, rent_usd: float) -> float:
    """``T*``: the longest time that `size_bytes` bytes are worth keeping for one use that saves `saved_us`.

    Parameters
    ----------
    saved_us
        GPU time one use saves: the time of computing less what the GPU waits for loading.
    size_bytes
        Bytes kept.
    gpu_us_usd
        USD per microsecond of the GPUs that compute.
    rent_usd
        USD per byte and microsecond, see :func:`rent`.

    Returns
    -------
    float
        Microseconds; 0 where nothing is saved, infinity where keeping is free.

    Examples
    --------
    >>> from kvreplay.cost.money import HOUR_US, prices, residency_us
    >>> own = prices("h100-sxm", dram_gb_usd=10)
    >>> kept = residency_us(266_640, 10_000 * 131072, gpu_us_usd=own.gpu_us_usd, rent_usd=own.rent("dram"))
    >>> round(kept / HOUR_US * 60, 1)
    26.3
    """
    if saved_us <= 0:
        return 0.0
    cost = size_bytes * rent_usd
    return gpu_us_usd * saved_us / cost if cost > 0 else inf


def usd_per_million_tokens(us_per_token: float, *, gpu_us_usd: float) -> float:
    """USD to compute a million input tokens at `us_per_token` of GPU time each."""
    return us_per_token * 1e6 * gpu_us_usd
