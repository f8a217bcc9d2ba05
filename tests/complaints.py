"""What an error is about, for `pytest.raises(..., check=...)`: its data, not its English."""

from __future__ import annotations

from collections.abc import Callable

from plaudit.errors import ConfigError


def about(setting: str, *words: str) -> Callable[[ConfigError], bool]:
    """Whether an error names this setting, and these words (values, names, commands) stand in its text."""

    def is_about(error: ConfigError) -> bool:
        return error.setting == setting and all(word in str(error) for word in words)

    return is_about
