"""Connections: as many file descriptors as the system gives."""

from __future__ import annotations

import resource

import pytest

from plaudit.service.connections import raise_file_limit


def test_where_the_system_refuses_many_descriptors_fewer_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def as_on_macos(_: int, limits: tuple[int, int]) -> None:
        asked.append(limits[0])
        if limits[0] > 10_240:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", as_on_macos)
    raise_file_limit()
    assert asked == [65_536, 10_240]
