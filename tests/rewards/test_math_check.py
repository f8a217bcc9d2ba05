"""Mathematical answers, checked in processes that can be killed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest
from complaints import about
from until import PATIENCE_S

from plaudit.errors import ConfigError
from plaudit.rewards.math_check import CHILD, MathCheck, answer_part


@pytest.fixture(scope="module")
def check() -> Iterator[MathCheck]:
    check = MathCheck(timeout=60.0, workers=1)
    yield check
    check.close()


def test_answers_are_compared_as_mathematics(check: MathCheck) -> None:
    pairs = [
        ("72", "She sold 48 + 24 = 72 clips. #### 72"),
        ("72", "#### 71"),
        ("1,000", "#### 1000"),
        (r"\frac{1}{2}", r"So it is \boxed{0.5}."),
        ("x^2", r"$x \cdot x$"),
        ("4", "I would rather not say."),
        ("4", ""),
    ]
    assert check.check(pairs) == [1, 0, 1, 1, 1, 0, 0]


def test_an_answer_that_stands_in_the_reasoning_alone_was_not_given(check: MathCheck) -> None:
    pairs = [
        ("42", "<think>it is 42</think>"),
        ("42", r"<think>it is \boxed{42}"),
        ("42", r"so \boxed{42}</think>I do not know."),
        ("42", r"<think>perhaps 41</think>It is \boxed{42}."),
    ]
    assert check.check(pairs) == [0, 0, 0, 1]


def test_a_truth_that_cannot_be_read_gives_no_score(check: MathCheck) -> None:
    assert check.check([("", r"\boxed{1}")]) == [None]


def test_an_answer_that_keeps_the_checker_busy_is_wrong_and_the_next_one_is_checked() -> None:
    with closing(MathCheck(timeout=3.0, workers=1)) as check:
        assert check.check([("1", r"\boxed{9^{9^{9^{9}}}}"), ("1", r"\boxed{1}")]) == [0, 1]


def test_a_child_that_was_killed_costs_nobody_his_answer(check: MathCheck) -> None:
    check.check([("3", r"\boxed{3}")])
    for child in psutil.Process().children():
        if child.status() != psutil.STATUS_ZOMBIE and str(CHILD) in child.cmdline():
            child.kill()
            child.wait(PATIENCE_S)
    assert check.check([("3", r"\boxed{3}")]) == [1]


def test_without_math_verify_it_says_what_to_install(
    check: MathCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(ConfigError, check=about("math-verify", "plaudit[math]")):
        check.check([("3", r"\boxed{3}")])


def test_it_works_from_any_thread(check: MathCheck) -> None:
    found: list[float | None] = []
    thread = threading.Thread(target=lambda: found.extend(check.check([("3", r"\boxed{3}")])))
    thread.start()
    thread.join()
    assert found == [1]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_checkers_of_its_own(check: MathCheck) -> None:
    check.check([("3", r"\boxed{3}")])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check.check([("5", r"\boxed{5}")]) == [1] else 1
            check.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert check.check([("3", r"\boxed{4}")]) == [0]


def test_only_the_end_of_a_response_is_read() -> None:
    assert answer_part("work #### 3 #### 4") == " 4"
    assert answer_part("x" * 10_000) == "x" * 4_000
