"""The adapter for OpenRLHF, without torch."""

from __future__ import annotations

import inspect

from plaudit.integrations.openrlhf import reward_func


def test_its_signature_is_the_documented_one() -> None:
    parameters = inspect.signature(reward_func).parameters
    assert list(parameters)[:3] == ["queries", "prompts", "labels"]
    assert not inspect.iscoroutinefunction(reward_func), "OpenRLHF calls it in a thread"
