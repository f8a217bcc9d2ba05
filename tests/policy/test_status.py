"""Who acts on which HTTP status."""

from __future__ import annotations

import pytest

from plaudit.errors import (
    EndpointRefused,
    KeyRefused,
    ModelNotFound,
    PlauditError,
    RateLimited,
    RequestRefused,
    TransportFailed,
)
from plaudit.policy.status import error_for


@pytest.mark.parametrize(
    ("meaning", "statuses"),
    [
        (KeyRefused, [401, 403]),
        (ModelNotFound, [404]),
        (RateLimited, [429, 498, 503, 529]),
        (EndpointRefused, [402, 405, 406, 407, 410, 415, 497, 501]),
        (RequestRefused, [400, 411, 413, 414, 416, 422, 426, 431, 451]),
        (TransportFailed, [408, 409, 421, 424, 425, 430, 444, 449, 460, 499, 500, 502, 504, 520, 530, 598]),
    ],
)
def test_each_status_says_who_acts(meaning: type[PlauditError], statuses: list[int]) -> None:
    assert {error_for(status) for status in statuses} == {meaning}
