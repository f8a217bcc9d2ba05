"""Children get what they need, and no key: not by its usual name, nor by any other."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from complaints import about

from plaudit.child_env import child_environment
from plaudit.errors import ConfigError
from plaudit.local import fetch, local_server
from plaudit.rewards import math_check

SECRETS = (
    "OPENAI_API_KEY",
    "PLAUDIT_API_KEY",
    "JUDGE",  # named by api_key_env
    "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "WANDB_API_KEY",
    "PGPASSWORD",
    "CUDA_LICENSE_TOKEN",
    "NIX_AUTH",
    "DATABASE_URL",
)


@pytest.fixture
def confess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that says what is in its environment, in place of any that we start."""
    for name in SECRETS:
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example/simple")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    program = tmp_path / "confess.py"
    told = tmp_path / "told.json"
    program.write_text(f"import json, os; open({str(told)!r}, 'w').write(json.dumps(dict(os.environ)))")
    return program


def told(program: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((program.parent / "told.json").read_text())
    assert "hunter2" not in found.values()
    assert found["PATH"] == os.environ["PATH"]
    return found


def test_the_math_checker_gets_no_key(confess: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(math_check, "CHILD", confess)
    with pytest.raises(ConfigError, check=about("", "import math_verify")):
        math_check.MathCheck(workers=1).check([("1", "1")])
    assert "PIP_INDEX_URL" not in told(confess)


def test_the_embedded_judge_gets_no_key(confess: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "CHILD", confess)
    model = confess.with_name("model.gguf")
    model.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(ConfigError, check=about("local_model")), local_server.LocalServer(model):
        pass
    assert told(confess)["CUDA_VISIBLE_DEVICES"] == "1"


def test_pip_gets_its_index_and_proxy_but_no_key(confess: Path) -> None:
    fetch.pip_download("x==1", confess.parent, pip=(sys.executable, str(confess)))
    found = told(confess)
    assert found["PIP_INDEX_URL"] == "https://pip.example/simple"
    assert found["https_proxy"] == "http://proxy.example:3128"


def test_nothing_is_let_through_that_is_not_needed() -> None:
    assert child_environment({"PATH": "/bin", "LC_ALL": "C", "MY_PATH": "x", "COOKIE": "y"}) == {
        "PATH": "/bin",
        "LC_ALL": "C",
    }
