"""Results of a sweep on disk: one small file per point, so that a rerun does only what is missing.

The name of a file is a digest of the point, the trace's content and the version: whatever would change the
result changes the name. Files appear whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvreplay import _core
from kvreplay.atomic import new_file
from kvreplay.errors import ConfigError, cannot_write

if TYPE_CHECKING:
    import os

SCHEMA = "sweep-point/1"


def key_of(spec: dict[str, Any], trace_sha256: str) -> str:
    """Name a point: sha256 over its values, the trace and the version."""
    text = json.dumps(
        {"schema": SCHEMA, "version": _core.__version__, "trace_sha256": trace_sha256, "spec": spec},
        sort_keys=True,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode()).hexdigest()


class Store:
    """A directory of finished points.

    Parameters
    ----------
    directory
        Made when it does not exist.

    Raises
    ------
    ConfigError
        When it cannot be made or is no directory.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self._directory, error) from error

    def _file(self, key: str) -> Path:
        return self._directory / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """What was stored under a key, ``None`` when nothing was.

        Raises
        ------
        ConfigError
            When the file is there but is not what this module wrote.
        """
        path = self._file(key)
        try:
            document = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _damaged(path) from error
        result = document.get("result") if isinstance(document, dict) else None
        if not isinstance(result, dict) or document.get("schema") != SCHEMA or document.get("key") != key:
            raise _damaged(path)
        return result

    def put(self, key: str, spec: dict[str, Any], trace_sha256: str, result: dict[str, Any]) -> None:
        """Store a result.

        Raises
        ------
        OutputError, ConfigError
            When it cannot be written.
        """
        document = {
            "schema": SCHEMA,
            "key": key,
            "version": _core.__version__,
            "trace_sha256": trace_sha256,
            "spec": spec,
            "result": result,
        }
        with new_file(self._file(key), overwrite=True) as beside:
            beside.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", "utf-8")


def _damaged(path: Path) -> ConfigError:
    return ConfigError(f"{path}: not a result of a sweep", hint="delete it, and the sweep computes it again")
