"""The options of an engine profile, settled: profile, its options, the tiers that go with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvreplay.cli import console
from kvreplay.specs import key_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvreplay.replaying import Tier


@dataclass(frozen=True)
class ProfileChoice:
    """The profile of a command line and the tiers that go with it.

    Parameters
    ----------
    tiers
        The tiers, fastest first.
    profile
        ``NAME@VERSION``, ``None`` for the generic rules.
    options
        Options of the profile.
    taken
        What was taken from a vLLM command line, line by line.
    """

    tiers: list[Tier]
    profile: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`kvreplay.replay`."""
        return {"profile": self.profile, "profile_options": self.options or None}


def choose(values: Mapping[str, Any], tiers: list[Tier]) -> ProfileChoice:
    """Settle profile, options and tiers; what is given directly beats what a vLLM command line says.

    Parameters
    ----------
    values
        The options of :data:`kvreplay.cli.options.PROFILE`.
    tiers
        The tiers given directly.

    Raises
    ------
    ConfigError
        When an option is not ``KEY=VALUE``, or the vLLM command line cannot be used.
    """
    profile, text = values["profile"], values["from_vllm"]
    given = key_values(list(values["profile_option"] or []), what="--profile-option")
    if text is None:
        return ProfileChoice(tiers, profile, given)
    from kvreplay.vllm_config import from_vllm

    found = from_vllm(text)
    return ProfileChoice(found.merged(tiers), profile or found.profile, found.options | given, found.lines())


def tell_taken(choice: ProfileChoice, *, quiet: bool) -> None:
    """Say on stderr what was taken from a vLLM command line."""
    if not quiet:
        for line in choice.taken:
            console.say(f"from vllm: {line}")
