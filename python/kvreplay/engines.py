"""Engine profiles: what a named release of a serving engine would do with the trace.

The rules live in the core, one model per engine; this module turns the words of Python and the command line
into what the core takes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from kvreplay import _core, calls, units
from kvreplay.errors import ConfigError, translated
from kvreplay.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from kvreplay.calls import ProgressHook
    from kvreplay.replaying import Tier

OUTPUTS = "output_blocks"
# What an engine decides itself: a tier of a profile leaves these at their defaults.
_FIXED = ("fill", "touch", "closure")


@dataclass(frozen=True)
class Profiled:
    """A trace in the blocks of an engine profile.

    Parameters
    ----------
    name
        The resolved profile, ``vllm@0.33.0``.
    core
        What the core replays.
    trace
        The trace in engine blocks: its ``requests()`` count them, its ids are their numbers.
    """

    name: str
    core: _core.EngineTrace
    trace: Trace

    def scale(self, model: object = None) -> units.Scale:
        """Factors between engine blocks, tokens and bytes."""
        return units.Scale(self.core.block_tokens, self.core.unique_blocks, units.kv_bytes_per_token(model))

    def most_blocks(self, tiers: Sequence[Mapping[str, Any]]) -> int:
        """Blocks a model may have to keep account of: named ones, and others as far as a tier has room."""
        totals = self.trace.core.totals()
        tokens = totals["input_tokens"] + totals["output_tokens"]
        room = max(int(tier["capacity_blocks"]) for tier in tiers)
        return self.core.unique_blocks + min(room, tokens // self.core.block_tokens)


def option_texts(options: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Options as the core takes them: ``True`` becomes ``true``, numbers their digits.

    Raises
    ------
    ConfigError
        For a value that is no text, number or truth value.
    """
    texts = []
    for key, value in (options or {}).items():
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, int | float | str):
            text = str(value)
        else:
            raise ConfigError(
                f"profile option {key}={value!r} is no text, number or truth value",
                hint="kvreplay profile show NAME lists the options",
            )
        texts.append((str(key), text))
    return texts


def profiled(trace: Trace, profile: object, options: Mapping[str, object] | None = None) -> Profiled:
    """Put a trace into the blocks of a profile.

    Parameters
    ----------
    trace
        The trace, in blocks of any size.
    profile
        ``NAME@VERSION``: a release or its prefix, the newest matching one known; two engines are joined by
        ``+``.
    options
        The profile's options by name (:func:`kvreplay.profiles`).

    Raises
    ------
    ConfigError
        For unknown names, releases and options, naming the known ones.
    """
    if not isinstance(profile, str):
        raise ConfigError(f"profile {profile!r} is not a name", hint='write profile="vllm@0.33"')
    texts = option_texts(options)
    with translated():
        core = _core.profile_trace(trace.core, profile, texts)
    return Profiled(core.profile, core, Trace(core.trace()))


def check_tiers(name: str, tiers: Sequence[Tier]) -> None:
    """Refuse rules that the engine decides itself.

    Raises
    ------
    ConfigError
        When a tier sets one.
    """
    for tier in tiers:
        defaults = {field.name: field.default for field in fields(tier)}
        for key in _FIXED:
            if getattr(tier, key) != defaults[key]:
                raise ConfigError(
                    f"{key} of tier {tier.name} is fixed by the profile {name}",
                    hint=f"leave {key} out, or replay without a profile",
                )


def check_model(name: str, model: object) -> None:
    """Refuse a model whose cache an engine keeps by other rules than the profile's.

    Raises
    ------
    ConfigError
        For a model with windows or recurrent layers: engines keep its layers in groups with keys, hits and
        evictions of their own, which no profile models.
    """
    if getattr(model, "is_hybrid", False):
        raise ConfigError(
            f"{getattr(model, 'name', 'the model')} is a hybrid model, and the profile {name} knows full "
            "attention only",
            hint="replay without the profile, or give --kv-bytes-per-token to count its blocks as if all "
            "layers kept every token",
        )


def replay_core(
    engine: Profiled,
    tiers: list[dict[str, Any]],
    *,
    events: bool,
    occupancy: bool,
    progress: ProgressHook | None,
) -> _core.Replay:
    """Run the engine's model over the trace."""
    return calls.run(
        lambda p: _core.replay_profile(
            engine.core, tiers, per_request=True, events=events, occupancy=occupancy, progress=p
        ),
        what=f"replaying {engine.name}",
        hook=progress,
    )


def rules(profile: str) -> tuple[str, pl.DataFrame]:
    """The resolved name of a profile and its rules: ``topic``, ``rule``, ``since``, ``source``."""
    from kvreplay.frames import frame

    with translated():
        name, table = _core.profile_rules(profile)
    return name, frame(table)


def output_bounds(
    trace: Trace,
    tiers: Sequence[Tier],
    *,
    profile: str,
    options: Mapping[str, object] | None = None,
    model: object = None,
    progress: ProgressHook | None = None,
) -> list[dict[str, Any]]:
    """What decoded blocks change: hits with private blocks (lower bound) and with the listed ones (upper).

    Parameters
    ----------
    trace, tiers, model, progress
        As in :func:`kvreplay.replay`.
    profile, options
        The profile; its option ``outputs`` is set here.

    Returns
    -------
    list of dict
        ``outputs`` (``private``, then ``listed``), ``hit_tokens`` and ``token_hit_ratio`` of all tiers; empty
        when the trace lists no output blocks, since there is no upper bound to show then.
    """
    from kvreplay.replaying import replay

    if OUTPUTS not in trace.requests().columns:
        return []
    rows = []
    for outputs in ("private", "listed"):
        result = replay(
            trace,
            tiers,
            profile=profile,
            profile_options={**(options or {}), "outputs": outputs},
            model=model,
            progress=progress,
        )
        summary = result.summary
        rows.append({"outputs": outputs} | {key: summary[key] for key in ("hit_tokens", "token_hit_ratio")})
    return rows
