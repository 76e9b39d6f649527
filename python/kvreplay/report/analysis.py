"""The main job: from a trace and some tiers to tables and an answer."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kvreplay import _core, memory
from kvreplay.engines import profiled
from kvreplay.errors import ConfigError
from kvreplay.points import curve_rows, log_spaced
from kvreplay.replaying import plan_of, resolve_tiers
from kvreplay.report import verdict, warnings
from kvreplay.splits import Split
from kvreplay.tables import WORTH, build
from kvreplay.tables.study import Study
from kvreplay.warmup import warmup_requests
from kvreplay.worth.bounds import check_times
from kvreplay.worth.plan import make_plan, resolve_model

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import polars as pl

    from kvreplay import units
    from kvreplay.calls import ProgressHook
    from kvreplay.cost import CostModel, Hardware
    from kvreplay.replaying import Tier
    from kvreplay.tables.schema import Table
    from kvreplay.trace import Trace

SCHEMA = "analyze/1"
WORTH_TABLES = [table.name for table in WORTH]
_BYTES_PER_REQUEST = 40
_BYTES_PER_REQUEST_AND_TIER = 32
# Loads, stores, savings and what is computed, the reuse runs, and copies while tables are made.
_BYTES_PER_TIMED_REQUEST_AND_TIER = 250


class Report:
    """An analysis: tables, verdict and warnings. Made by :func:`kvreplay.analyze`."""

    def __init__(self, study: Study, *, per_request: bool) -> None:
        self._study = study
        self._tables = build(study, per_request=per_request)
        self.verdict: list[dict[str, Any]] = verdict.compose(study)
        """The answer, as a list of ``{code, text, evidence}``."""
        quality = self.tables["quality"].iter_rows(named=True)
        self.warnings: list[dict[str, str]] = warnings.of_quality(quality) + warnings.of_tiers(study)
        """What to know before trusting the numbers, as a list of ``{code, text}``."""

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name; ``kvreplay list tables`` says what they hold."""
        return {name: frame for name, (_, frame) in self._tables.items()}

    @property
    def schemas(self) -> dict[str, Table]:
        """The description of each table by name."""
        return {name: table for name, (table, _) in self._tables.items()}

    @property
    def info(self) -> dict[str, Any]:
        """The facts of :attr:`kvreplay.Trace.info`."""
        return self._study.trace.info

    @property
    def study(self) -> Study:
        """What the report was made from."""
        return self._study

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked, without names of files: part of every table's metadata."""
        return {
            "command": "analyze",
            "tiers": [asdict(tier) for tier in self._study.tiers],
            "kv_bytes_per_token": self._study.scale.kv_bytes_per_token,
            "rules": self._study.rules,
            "policies": self._study.compare,
            "admissions": self._study.admissions,
            "assumptions": None if self._study.plan is None else self._study.plan.assumptions,
        }

    @property
    def summary(self) -> dict[str, Any]:
        """The tiers together (:attr:`kvreplay.ReplayResult.summary`); empty without tiers."""
        return {} if self._study.result is None else self._study.result.summary

    @cached_property
    def curve(self) -> list[dict[str, Any]]:
        """The LRU curve at 32 log-spaced capacities."""
        return self.curve_at(log_spaced(self._study.curve.last_capacity_blocks))

    def curve_at(self, capacities: list[int]) -> list[dict[str, Any]]:
        """The LRU curve at some capacities (blocks), as rows of :func:`kvreplay.hit_curve`."""
        study = self._study
        warm = None
        if study.warm is not None:
            warm = int(study.trace.requests()["input_tokens"].slice(study.warm).sum())
        table = study.curve.at(capacities).to_pydict()
        return curve_rows("lru", study.scale, totals=study.totals, table=table, warm_tokens=warm)

    def to_dict(self) -> dict[str, Any]:
        """The document of ``kvreplay analyze --json``."""
        ceiling = self._study.ceiling_ratios
        tiers = self.tables.get("tiers")
        return {
            "schema": SCHEMA,
            "version": _core.__version__,
            "trace": self.info,
            "ratios": dict(zip(ceiling["name"], ceiling["value"], strict=True)),
            "curve": self.curve,
            "tiers": [] if tiers is None else tiers.to_dicts(),
            "policies": self._rows("policies"),
            "windows": self._rows("windows"),
            "groups": self._rows("groups"),
            **{name: self._rows(name) for name in WORTH_TABLES},
            "summary": self.summary,
            "verdict": self.verdict,
            "warnings": self.warnings,
        }

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return self.tables[name].to_dicts() if name in self.tables else []

    def write(self, directory: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ``report.json``, ``tables/*.parquet`` and ``report.html``, whole or not at all.

        Parameters
        ----------
        directory
            Must not exist unless `overwrite` is given.
        overwrite
            Replace an existing directory in one step.

        Raises
        ------
        ConfigError
            When the directory exists or the place is wrong.
        OutputError
            When the disk is full or fails; an existing report stays as it was.
        """
        from kvreplay.report.bundle import write_bundle

        write_bundle(self, directory, overwrite=overwrite)

    def _repr_html_(self) -> str:
        from kvreplay.report.html import fragment

        return fragment(self)

    def __repr__(self) -> str:
        lines = "\n".join(f"- {line['text']}" for line in self.verdict)
        return f"<Report of {self.info['requests']:,} requests>\n{lines}"


def analyze(
    trace: Trace,
    tiers: Sequence[Tier] | None = None,
    *,
    profile: str | None = None,
    profile_options: Mapping[str, object] | None = None,
    model: object = None,
    hardware: str | Hardware | None = None,
    cost: CostModel | None = None,
    prices: Mapping[str, float] | None = None,
    warmup: float | str | None = None,
    last_token: bool = False,
    full_blocks_only: bool = False,
    per_request: bool = False,
    policies: Sequence[str] | None = None,
    admissions: Sequence[str] | None = None,
    group_by: str | Sequence[str] | None = None,
    window: str | None = None,
    progress: ProgressHook | None = None,
) -> Report:
    """Answer what a cache could serve of a trace, and what these tiers do.

    Parameters
    ----------
    trace
        The trace.
    tiers
        The tiers, fastest first; without any the report holds ceiling, curve and reuse only.
    profile, profile_options
        An engine whose rules the tiers follow (:func:`kvreplay.replay`); the ceiling, the curve and the
        bounds stay those of the trace.
    model, hardware, cost, prices
        As in :func:`kvreplay.replay`. With a model and a GPU (or a cost model) the report says what the hits
        are worth: tables ``hit_quality``, ``scenarios``, ``hits_by_length`` and ``demand``.
    warmup
        A fraction of the requests or a duration: adds warm columns beside the cold ones.
    last_token
        A hit never covers the last input token.
    full_blocks_only
        The partial last block neither hits nor stays.
    per_request
        Add the table ``requests``.
    policies
        Policies to compare in one cache of each tier's capacity and of all together: adds the table
        ``policies``.
    admissions
        Admission filters to compare in front of the tiers below the first: adds the table ``admissions``.
    group_by
        A column of the trace or several: adds the table ``groups``.
    window
        A duration (``"5m"``): adds the table ``windows``.
    progress
        Called with ``(what, done, total)``.

    Returns
    -------
    Report
        ``report.tables``, ``report.verdict``, ``report.warnings``, ``report.summary``,
        ``report.write(directory)``.

    Raises
    ------
    ConfigError
        For an unusable tier or option.

    Examples
    --------
    >>> import kvreplay as kv
    >>> trace = kv.generate("shared_prefix", requests=200, seed=1)
    >>> report = kv.analyze(trace, [kv.Tier("gpu", capacity="20%")])
    >>> report.tables["tiers"].height, [line["code"] for line in report.verdict][:2]
    (1, ['ceiling', 'tiers'])
    """
    tiers = list(tiers or [])
    model = resolve_model(model)
    scale = trace.scale(model)
    worth: dict[str, Any] = {"model": model, "hardware": hardware, "cost": cost, "prices": prices}
    Split.of(trace, group_by=group_by, window=window)  # what is wrong is said before any work is done
    if tiers:
        check_times(plan_of(tiers, **worth), trace)
        resolve_tiers(tiers, _tier_scale(trace, scale, profile, profile_options))
    else:
        make_plan({}, **worth)  # names are checked even where there is nothing to time
    if not tiers and profile is not None:
        raise ConfigError(
            f"the profile {profile} has no tier to replay", hint='give one: --tier "gpu=21520 tokens"'
        )
    if not tiers and (policies or admissions or group_by or window is not None):
        raise ConfigError(
            "policies, filters, groups and windows are compared at tiers, and there is none",
            hint='give one: --tier "gpu=5000 blocks", in Python kv.Tier("gpu", capacity="5000 blocks")',
        )
    per_tier = _BYTES_PER_REQUEST_AND_TIER
    if hardware is not None or cost is not None:
        per_tier += _BYTES_PER_TIMED_REQUEST_AND_TIER
    memory.check(
        len(trace) * (_BYTES_PER_REQUEST + per_tier * len(tiers)),
        what=f"the results of {len(trace):,} requests",
        hint="analyze a part of the trace: trace.sample_sessions(0.1)",
    )
    study = Study(
        trace=trace,
        tiers=tiers,
        scale=scale,
        warm=warmup_requests(trace, warmup),
        rules={
            "warmup": warmup,
            "last_token": last_token,
            "full_blocks_only": full_blocks_only,
            "group_by": group_by,
            "window": window,
            "profile": profile,
            "profile_options": dict(profile_options) if profile_options else None,
        },
        worth=worth,
        compare=list(policies or []),
        admissions=list(admissions or []),
        progress=progress,
    )
    return Report(study, per_request=per_request)


def _tier_scale(
    trace: Trace, scale: units.Scale, profile: str | None, options: Mapping[str, object] | None
) -> units.Scale:
    """What a block of the tiers is: the trace's, or the profile's."""
    if profile is None:
        return scale
    return profiled(trace, profile, options).scale(scale.kv_bytes_per_token)
