"""Links: the time it takes to bring a tier's KV to the GPU, and to write it there."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kvreplay.cost import data, rates
from kvreplay.errors import ConfigError, unknown
from kvreplay.specs import key_values, split_outside
from kvreplay.units import is_whole

if TYPE_CHECKING:
    import polars as pl

    from kvreplay.cost.devices import Hardware

OVERLAPS = ["none", "layerwise", "full"]
STORES = ["async", "blocking"]
MEDIA = ["dram", "ssd"]
HOST = "host"
_MOST_COPIES = 2**20
_TIMES = ("fixed", "lookup", "copy")
_RATES = ("bandwidth", "write_bandwidth", "low", "high", "bus")


@dataclass(frozen=True)
class Link:
    """The way from a tier to the GPU: ``t = lookup + fixed + copies * copy + bytes / bandwidth``.

    Parameters
    ----------
    name
        A name of your own, or one of :func:`kvreplay.links` whose bus then bounds the bandwidth.
    bandwidth
        What one GPU gets, with its unit: ``"43.9 GB/s"``, ``"32 GiB/s"``, ``"400 Gbps"``.
    fixed
        Time of a load besides its bytes and copies: ``"9.8 ms"``.
    lookup
        Time to find out whether the tier has the prefix.
    copies_per_block
        Copies that a block takes: 1 where the engine keeps a block in one piece, 2 L where it keeps keys and
        values of every layer apart.
    copy
        Time of one copy besides its bytes: ``"3.5 us"``.
    block_tokens
        Tokens of the block that is copied.
    overlap
        What of a load hides behind computing the rest of the prompt: ``none``; ``layerwise`` (all but the
        first layer); ``full`` (all).
    write_bandwidth
        Bandwidth of writing to the tier; the same as reading unless given.
    store
        ``async``: writing does not delay the request; ``blocking``: it does.
    through
        A link that the data passes afterwards, its name, or ``"host"``: the GPU's own link to its host.
    pipelined
        The two links work at the same time, block by block, instead of one after the other.
    low, high
        Ends of what the bandwidth may be; the same as `bandwidth` unless given.
    bus
        The most the bus can carry.
    medium
        What the tier behind it keeps blocks in, ``dram`` or ``ssd``: decides the rent and the wear. ``None``:
        neither, or unknown.
    source, date
        Where the numbers come from and when.

    Raises
    ------
    ConfigError
        For a value without a unit or with an ambiguous one (``Gb``), or a link faster than its bus.

    Examples
    --------
    >>> import kvreplay as kv
    >>> link = kv.Link("pcie", bandwidth="43.9 GB/s", fixed="9.8 ms")
    >>> round(link.load_us(511, 511 * 131072))
    11326
    """

    name: str
    _: KW_ONLY
    bandwidth: str
    fixed: str
    lookup: str = "0 us"
    copies_per_block: int = 1
    copy: str = "0 us"
    block_tokens: int = 16
    overlap: str = "none"
    write_bandwidth: str | None = None
    store: str = "async"
    through: Link | str | None = None
    pipelined: bool = False
    low: str | None = None
    high: str | None = None
    bus: str | None = None
    medium: str | None = None
    source: str = "given"
    date: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(f"{self.name!r} is not a name for a link", hint='for example "pcie"')
        for field in _TIMES:
            rates.time_us(getattr(self, field), what=f"{field} of link {self.name}")
        for field in _RATES:
            if getattr(self, field) is not None or field == "bandwidth":
                rates.bandwidth(getattr(self, field), what=f"{field} of link {self.name}")
        for field, most in (("copies_per_block", _MOST_COPIES), ("block_tokens", _MOST_COPIES)):
            if not is_whole(getattr(self, field), 1, most):
                raise ConfigError(
                    f"{field} of link {self.name} is {getattr(self, field)!r}", hint="give a number from 1"
                )
        self._check_choices()
        self._check_through()
        self._check_bus()

    def _check_choices(self) -> None:
        if not isinstance(self.pipelined, bool):
            raise ConfigError(f"pipelined of link {self.name} is {self.pipelined!r}", hint="true or false")
        for field, known in (("overlap", OVERLAPS), ("store", STORES), ("medium", MEDIA)):
            value = getattr(self, field)
            if value not in known and not (field == "medium" and value is None):
                raise unknown(f"{field} of link {self.name}:", str(value), known)

    def _check_through(self) -> None:
        if self.through is None or isinstance(self.through, Link) or self.through == HOST:
            return
        if not isinstance(self.through, str):
            raise ConfigError(f"through of link {self.name} is {self.through!r}", hint="give a link")
        link(self.through)

    def _check_bus(self) -> None:
        most = self.bus
        if most is None and self.name.strip().lower() in data.catalogue("links"):
            most = data.catalogue("links")[self.name.strip().lower()].get("bus")
        if most is None:
            return
        for field in ("bandwidth", "write_bandwidth", "low", "high"):
            text = getattr(self, field)
            if text is not None and rates.bandwidth(text) > rates.bandwidth(most):
                raise ConfigError(
                    f"{field} {text} of link {self.name} is more than its bus carries ({most})",
                    hint="is it in bits instead of bytes, or of several links together?",
                )

    @cached_property
    def bytes_per_us(self) -> float:
        """Bandwidth of reading, bytes per microsecond."""
        return rates.bandwidth(self.bandwidth) / 1e6

    @cached_property
    def write_bytes_per_us(self) -> float:
        """Bandwidth of writing, bytes per microsecond."""
        return rates.bandwidth(self.write_bandwidth or self.bandwidth) / 1e6

    @cached_property
    def fixed_us(self) -> float:
        """Look-up and fixed time, those of the link behind it included."""
        own = rates.time_us(self.lookup) + rates.time_us(self.fixed)
        return own + (self.next.fixed_us if self.next is not None else 0.0)

    @cached_property
    def copy_us(self) -> float:
        """Time of the copies of one block besides their bytes."""
        return self.copies_per_block * rates.time_us(self.copy)

    @cached_property
    def next(self) -> Link | None:
        """The link behind this one.

        Raises
        ------
        ConfigError
            When it is the GPU's own link, and no GPU was named.
        """
        if self.through == HOST:
            raise ConfigError(
                f"link {self.name} goes through the GPU's link to its host, and no GPU is named",
                hint='give hardware="h100-sxm", or kv.Link(..., through="pcie5-x16")',
            )
        return link(self.through) if isinstance(self.through, str) else self.through

    def of(self, hardware: Hardware | None) -> Link:
        """The link in a host with `hardware`: ``through="host"`` becomes its link."""
        if self.through == HOST and hardware is not None:
            return replace(self, through=link(hardware.host_link))
        if isinstance(self.through, Link):
            return replace(self, through=self.through.of(hardware))
        return self

    def ends(self) -> tuple[Link, Link]:
        """The link at the slow and at the fast end of what its bandwidth may be."""
        behind = (None, None) if self.next is None else self.next.ends()
        slow = replace(self, bandwidth=self.low or self.bandwidth, through=behind[0])
        return slow, replace(self, bandwidth=self.high or self.bandwidth, through=behind[1])

    def load_us(self, tokens: int, bytes: float) -> float:
        """Time to load `tokens` tokens of `bytes` bytes, microseconds; 0 for nothing."""
        if tokens <= 0:
            return 0.0
        return self.fixed_us + float(self.stream(-(-tokens // self.block_tokens), bytes, max))

    def load_expr(self, tokens: pl.Expr, bytes: pl.Expr) -> pl.Expr:
        """:meth:`load_us` of columns, Float64."""
        import polars as pl

        blocks = ((tokens + (self.block_tokens - 1)) // self.block_tokens).cast(pl.Float64)
        time = self.stream(blocks, bytes.cast(pl.Float64), pl.max_horizontal) + self.fixed_us
        return pl.when(tokens > 0).then(time).otherwise(0.0)

    def stream(self, blocks: Any, size: Any, larger: Any) -> Any:
        """Time of copies and bytes on this link and those behind it; for numbers and columns alike."""
        own = blocks * self.copy_us + size / self.bytes_per_us
        if self.next is None:
            return own
        behind = self.next.stream(blocks * (self.block_tokens / self.next.block_tokens), size, larger)
        return larger(own, behind) if self.pipelined else own + behind

    def store_us(self, tokens: int, bytes: float) -> float:
        """Time to write `tokens` tokens of `bytes` bytes to the tier, microseconds, on this link alone."""
        if tokens <= 0:
            return 0.0
        return -(-tokens // self.block_tokens) * self.copy_us + bytes / self.write_bytes_per_us

    def store_expr(self, tokens: pl.Expr, bytes: pl.Expr) -> pl.Expr:
        """:meth:`store_us` of columns, Float64."""
        import polars as pl

        blocks = ((tokens + (self.block_tokens - 1)) // self.block_tokens).cast(pl.Float64)
        time = blocks * self.copy_us + bytes.cast(pl.Float64) / self.write_bytes_per_us
        return pl.when(tokens > 0).then(time).otherwise(0.0)

    def hit_us(self, load_us: float, compute_us: float, *, layers: int = 1) -> float:
        """Time of a load and of computing the rest, with what overlaps, microseconds."""
        return float(self._overlapped(load_us, compute_us, layers, max))

    def hit_expr(self, load_us: pl.Expr, compute_us: pl.Expr, *, layers: int = 1) -> pl.Expr:
        """:meth:`hit_us` of columns."""
        import polars as pl

        result: pl.Expr = self._overlapped(load_us, compute_us, layers, pl.max_horizontal)
        return result

    def _overlapped(self, load: Any, compute: Any, layers: int, larger: Any) -> Any:
        if self.overlap == "none":
            return load + compute
        if self.overlap == "full":
            return larger(load, compute)
        first = load / layers
        return first + larger(load - first, compute)


def link(name: str | Link) -> Link:
    """Find a link in the catalogue, or make one of a text; a :class:`Link` is returned as it is.

    Parameters
    ----------
    name
        A name of :func:`links`, alone or with values of your own behind it in parentheses; a new name needs
        ``bandwidth`` and ``fixed`` there.

    Raises
    ------
    ConfigError
        For an unknown name, key or value.

    Examples
    --------
    >>> import kvreplay as kv
    >>> kv.link("nvme-gen4").bandwidth
    '6.5 GB/s'
    >>> kv.link("mine(bandwidth=22 GB/s, fixed=5 ms)").fixed
    '5 ms'
    """
    if isinstance(name, Link):
        return name
    own, bracket, rest = str(name).strip().partition("(")
    values: dict[str, Any] = {}
    if bracket:
        values = _given(own.strip(), rest)
    if not values or own.strip().lower() in data.catalogue("links"):
        own = data.canonical(own, of="links", what="link")
        values = data.catalogue("links")[own] | values
    missing = [key for key in ("bandwidth", "fixed") if key not in values]
    if missing:
        raise ConfigError(
            f"link {own.strip()} has no {missing[0]}",
            hint='for example "mine(bandwidth=22 GB/s, fixed=5 ms)"',
        )
    return Link(own.strip(), **values)


def _given(name: str, rest: str) -> dict[str, Any]:
    """The values in the parentheses behind a name, each of its field's type."""
    if not rest.rstrip().endswith(")"):
        raise ConfigError(f"link {name} lacks a closing ')'", hint="check the brackets")
    inside = rest.rstrip()[:-1]
    values: dict[str, Any] = dict(key_values(split_outside(inside, ","), what=f"link {name}"))
    known = [field for field in Link.__dataclass_fields__ if field not in {"name", "_"}]
    for key, text in values.items():
        if key not in known:
            raise unknown(f"key of link {name}:", key, known)
        if key in {"copies_per_block", "block_tokens"} and text.isdecimal():
            values[key] = int(text)
        if key == "pipelined" and text in {"true", "false"}:
            values[key] = text == "true"
    return values


def links() -> pl.DataFrame:
    """Links of the catalogue, by name.

    Returns
    -------
    pl.DataFrame
        ``name``, ``bandwidth_gb_s``, ``low_gb_s``, ``high_gb_s``, ``write_gb_s``, ``bus_gb_s`` (10^9 bytes
        per second), ``fixed_us``, ``copy_us``, ``copies_per_block``, ``through``, ``medium``, ``source``,
        ``date``.
    """
    import polars as pl

    schema: dict[str, Any] = {
        "name": pl.String,
        "bandwidth_gb_s": pl.Float64,
        "low_gb_s": pl.Float64,
        "high_gb_s": pl.Float64,
        "write_gb_s": pl.Float64,
        "bus_gb_s": pl.Float64,
        "fixed_us": pl.Float64,
        "copy_us": pl.Float64,
        "copies_per_block": pl.Int64,
        "through": pl.String,
        "medium": pl.String,
        "source": pl.String,
        "date": pl.String,
    }
    rows = [_row(link(name)) for name in data.catalogue("links")]
    return pl.DataFrame(rows, schema=schema, orient="row").sort("name")


def _row(one: Link) -> dict[str, Any]:
    def gb_s(text: str | None) -> float | None:
        return None if text is None else rates.bandwidth(text) / 1e9

    return {
        "name": one.name,
        "bandwidth_gb_s": gb_s(one.bandwidth),
        "low_gb_s": gb_s(one.low or one.bandwidth),
        "high_gb_s": gb_s(one.high or one.bandwidth),
        "write_gb_s": gb_s(one.write_bandwidth or one.bandwidth),
        "bus_gb_s": gb_s(one.bus),
        "fixed_us": rates.time_us(one.lookup) + rates.time_us(one.fixed),
        "copy_us": rates.time_us(one.copy),
        "copies_per_block": one.copies_per_block,
        "through": one.through,
        "medium": one.medium,
        "source": one.source,
        "date": one.date,
    }
