"""A TRL training script or configuration, checked before the training: the judge, the groups, the overlap.

A script is read, not run: neither TRL nor a GPU is needed, and no model is loaded. What it computes is not
known here, and said to be so.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plaudit.judges
import plaudit.rewards
from plaudit.cli.endpoint_check import CheckResult, note, ok, wrong
from plaudit.config import Endpoint, expanded
from plaudit.engine import configure
from plaudit.errors import BatchFailed, ConfigError
from plaudit.files import decoded, read_text
from plaudit.integrations.trl import reward_function
from plaudit.integrations.trl.batch_reward import BatchOptions
from plaudit.integrations.trl.trainer_facts import version_of_trl
from plaudit.judges.base import compares
from plaudit.judges.check import Demanding
from plaudit.settings import NAMES, Settings, load
from plaudit.types import Sample

FUNCTION = "reward_function"
GENERATIONS = {"GRPOConfig": 8, "RLOOConfig": 2}
"""Completions for each prompt where a configuration does not say."""
CLASSES = {
    name: found
    for module in (plaudit.judges, plaudit.rewards)
    for name, found in vars(module).items()
    if isinstance(found, type)
} | {"Endpoint": Endpoint}
"""What a script may build that is built here too: plain data."""
UNKNOWN: Any = object()
"""A value that is known only when the script runs."""


@dataclass(slots=True)
class _Training:
    """What a script or a configuration says."""

    names: dict[str, ast.expr] = field(default_factory=dict)
    """What each name of the script was assigned last."""
    reward: ast.Call | None = None
    """The call of reward_function."""
    functions: list[str] = field(default_factory=list)
    """The reward functions that the trainer gets, as they are written."""
    kind: str = "GRPOConfig"
    config: Mapping[str, Any] = field(default_factory=dict)
    overlaps: bool = False


def check_trl(path: Path) -> tuple[Settings, tuple[Endpoint, ...], list[CheckResult]]:
    """What a script, or a file for `trl grpo --config`, says of the judge, and what is wrong with it.

    ConfigError where it cannot be read, or has no reward function of plaudit, or one with a wrong option.
    """
    if path.suffix not in (".py", ".yaml", ".yml", ".json"):
        raise _unfit(path, "is neither a Python script nor a YAML or JSON file")
    text = read_text(path, setting="trl")
    training = _script(path, text) if path.suffix == ".py" else _config(path, text)
    if (call := training.reward) is None:
        how = f"write reward_funcs={FUNCTION}(judge, url=..., model=...)"
        raise _unfit(path, f"has no call of {FUNCTION}; {how}")
    positional, given = _arguments(call, training.names)
    judge = given.pop("judge", positional[0] if positional else UNKNOWN)
    unknown = [name for name, value in given.items() if value is UNKNOWN]
    options = {name: value for name, value in given.items() if value is not UNKNOWN}
    engine = {name: value for name, value in options.items() if name not in _OWN}
    is_open = any(name in _TARGETS or name.startswith("**") for name in unknown)
    has_target = not (is_open and _TARGETS.isdisjoint(options))
    what = "a judge of the script's own" if judge is UNKNOWN else type(judge).__name__
    checks = [ok("reward", f"{FUNCTION} in line {call.lineno}, {what}")]
    if judge is not UNKNOWN:
        instead: dict[str, Any] = {} if has_target else {"url": "http://localhost/v1"}
        with contextlib.suppress(BatchFailed):  # the endpoint is examined, and named, further on
            reward_function(judge, **options, **instead)  # says what is wrong with any of them
        checks += _reference(judge, given)
    if unknown:
        known_later = "known only when the script runs, and not checked"
        checks.append(note("options", f"{', '.join(unknown)}: {known_later}"))
    if (version := version_of_trl()) is None:
        checks.append(note("trl", "not installed here, so its version is not checked (1.6 or later)"))
    else:
        checks.append(ok("trl", version))
    if (count := len(training.functions)) > 1:
        why = f"{count} functions, and TRL counts a missing verdict as 0 beside another one"
        how = f"pass the others to {FUNCTION} as rules=[...]"
        checks.append(wrong("functions", f"reward_funcs has {why}; {how}"))
    checks += [_groups(training, judge), _overlap(training)]
    endpoints = configure(load({}), **engine)[0].endpoints if has_target else ()
    plain = (str, int, float, tuple)
    named = {name: value for name, value in engine.items() if name in NAMES and isinstance(value, plain)}
    if urls := engine.get("url", engine.get("base_url")):
        named["base_url"] = (urls,) if isinstance(urls, str) else tuple(urls)
    return load(named), endpoints, checks


_TARGETS = {"url", "base_url", "endpoints", "engine"}
"""Options that say which endpoints there are."""
_OWN = {"judge", "penalty", "rules", "rule_weights", "monitor", "weight", "engine"} | set(
    BatchOptions.__dataclass_fields__
)


def _unfit(path: Path, why: str) -> ConfigError:
    return ConfigError(why, setting="trl", value=str(path))


def _reference(judge: Any, given: Collection[str]) -> list[CheckResult]:
    """Whether the judge gets the right answers, where it needs them."""
    if "reference" not in given and isinstance(judge, Demanding):
        try:
            judge.check(Sample("prompt", "response"))
        except ConfigError:
            needs = "this judge compares with the right answer; name its column: reference='solution', say"
            return [wrong("reference", needs)]
    return []


def _groups(training: _Training, judge: Any) -> CheckResult:
    size = training.config.get("num_generations", GENERATIONS[training.kind])
    batch = training.config.get("per_device_train_batch_size", 8)
    accumulated = training.config.get("gradient_accumulation_steps", 1)
    steps = training.config.get("steps_per_generation") or accumulated
    if not all(isinstance(number, int) for number in (size, batch, steps)):
        return note("group", "num_generations or the batch size is known only at run time")
    if size < 2:
        return wrong("group", "num_generations=1 gives no advantage; set 8, say")
    if (batch * steps) % size == 0:
        return ok("group", f"{size} completions for each prompt")
    whole = f"per_device_train_batch_size x steps_per_generation is {batch * steps}, no multiple of {size}"
    if judge is not UNKNOWN and compares(judge):
        return wrong("group", f"{whole}; this judge compares within a group: make it one")
    return note("group", f"{whole}: groups lie across processes, and TRL refuses a single one")


def _overlap(training: _Training) -> CheckResult:
    if not training.overlaps:
        return note("overlap", "not used; overlap(GRPOTrainer) judges during the log-probs")
    config = training.config
    has_log_probs = (
        training.kind == "RLOOConfig"
        or config.get("beta", 0.0) != 0.0
        or config.get("use_vllm", False)
        or config.get("num_iterations", 1) != 1
        or config.get("steps_per_generation") not in (None, config.get("gradient_accumulation_steps", 1))
    )
    if has_log_probs:
        return ok("overlap", "the judge works while log-probs are computed")
    return note("overlap", "beta=0 leaves no log-probs to hide behind; beta=0.04 would")


def _script(path: Path, text: str) -> _Training:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise _unfit(path, f"is not Python: {error.msg}, line {error.lineno}") from None
    found = _Training()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.names[node.targets[0].id] = node.value
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = _name(call.func)
        if name == FUNCTION and found.reward is None:
            found.reward = call
        elif name in GENERATIONS:
            found.kind, found.config = name, _arguments(call, found.names)[1]
        elif functions := next((one.value for one in call.keywords if one.arg == "reward_funcs"), None):
            listed = _resolved(functions, found.names)
            parts = listed.elts if isinstance(listed, ast.List | ast.Tuple) else [functions]
            found.functions = [ast.unparse(part) for part in parts]
            found.overlaps = "overlap(" in ast.unparse(_resolved(call.func, found.names))
    return found


def _config(path: Path, text: str) -> _Training:
    """A file for `trl grpo --config`: its reward function is in a module beside it."""
    config = decoded(text, path, setting="trl", default="YAML")
    if not isinstance(config, dict):
        raise _unfit(path, "is not a table of settings")
    functions = config.get("reward_funcs") or []
    functions = [str(one) for one in functions] if isinstance(functions, list) else [str(functions)]
    for function in functions:
        module, _, name = function.rpartition(".")
        file = expanded(path).parent.joinpath(*module.split(".")).with_suffix(".py") if module else None
        if file is not None and file.is_file():
            script = _script(file, file.read_text(encoding="utf-8"))
            call = script.names.get(name)
            if isinstance(call, ast.Call) and _name(call.func) == FUNCTION:
                return _Training(script.names, call, functions, config=config)
    return _Training(functions=functions, config=config)


def _arguments(call: ast.Call, names: Mapping[str, ast.expr]) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments, by position and by name."""
    named = {
        one.arg or f"**{ast.unparse(one.value)}": _value(one.value, names) if one.arg else UNKNOWN
        for one in call.keywords
    }
    return [_value(one, names) for one in call.args], named


def _value(node: ast.expr, names: Mapping[str, ast.expr]) -> Any:
    """What an expression is, where that can be said without running the script."""
    node = _resolved(node, names)
    if isinstance(node, ast.Call) and (kind := CLASSES.get(_name(node.func))) is not None:
        positional, named = _arguments(node, names)
        if any(one is UNKNOWN for one in (*positional, *named.values())):
            return UNKNOWN
        try:
            return kind(*positional, **named)
        except TypeError as error:
            raise ConfigError(f"line {node.lineno}: {error}") from None
    if isinstance(node, ast.List | ast.Tuple):
        values = [_value(one, names) for one in node.elts]
        if any(one is UNKNOWN for one in values):
            return UNKNOWN
        return values if isinstance(node, ast.List) else tuple(values)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN


def _resolved(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """What a name stands for, however many names lie between."""
    for _ in range(len(names) + 1):
        if not isinstance(node, ast.Name) or node.id not in names:
            break
        node = names[node.id]
    return node


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
