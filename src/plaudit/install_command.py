"""The command that installs a package beside plaudit, however that was installed."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path


def install_command(requirement: str, *, prefix: str = sys.prefix, python: str = sys.executable) -> str:
    """What to type so that this environment gets a package, like `pip install "plaudit[data]"`.

    Args:
        requirement: A package, with its extra if it has one.
        prefix: The environment's folder.
        python: The environment's interpreter.
    """
    quoted = f'"{requirement}"' if "[" in requirement else requirement
    if (Path(prefix) / "pipx_metadata.json").is_file():
        return f"pipx runpip plaudit install {quoted}"
    if (Path(prefix) / "image").is_file() and "[" in requirement:  # of the Dockerfile: read-only, without pip
        return f"docker build --build-arg 'EXTRAS={requirement[requirement.index('[') :]}' -t plaudit ."
    config = Path(prefix) / "pyvenv.cfg"
    if config.is_file() and re.search(r"^uv =", config.read_text("utf-8"), re.MULTILINE):  # has no pip
        return f"uv pip install --python {shlex.quote(python)} {quoted}"
    pip = shutil.which("pip")
    is_ours = pip is not None and Path(pip).parent == Path(python).parent
    return f"pip install {quoted}" if is_ours else f"{shlex.quote(python)} -m pip install {quoted}"
