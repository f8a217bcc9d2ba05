"""`plaudit score`: a verdict for every line of a file."""

from __future__ import annotations

import typer

from plaudit.cli import options
from plaudit.cli.console import stderr
from plaudit.cli.convene import convene
from plaudit.cli.job import Job, Run
from plaudit.settings import load
from plaudit.setup.engines import check_cache, engine_for

HELP = (
    "Give every line of a file a score from a judge.\n\n"
    'IN holds one JSON object a line: "prompt" (text or messages) and "response"; "reference", "group" and '
    '"id" if you like; other fields are carried through. OUT gets the same lines in the same order, plus '
    '"score" (a number, or null without a verdict), "status" (ok, empty, failed, deadline, unreadable, '
    'refused, flagged), "reason", "judge", and "error" where there is one. Fields of these names in IN are '
    "replaced.\n\n"
    "OUT appears complete or not at all. What is scored is kept in the cache: after a crash or Ctrl-C, run "
    "the same command again."
)
EPILOG = (
    "Example:  plaudit score answers.jsonl -o scored.jsonl --base-url http://localhost:8000/v1 "
    '--rubric "Is it correct and brief?"\n\n'
    "Exit status:  0 every line has a verdict, 3 some have none, 2 bad usage or input, 130 stopped by Ctrl-C."
)


def score(
    context: typer.Context,
    source: options.Input,
    *,
    output: options.Output,
    base_url: options.BaseUrl = None,
    model: options.Model = None,
    api_key_env: options.ApiKeyEnv = None,
    judge: options.Judge = None,
    rubric: options.Rubric = None,
    scale: options.Scale = None,
    local_model: options.LocalModel = None,
    yes: options.Yes = False,
    max_concurrent: options.MaxConcurrent = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget: options.Budget = None,
    price: options.Price = None,
    timeout: options.Timeout = None,
    deadline: options.Deadline = None,
    cache: options.Cache = None,
    on_failure: options.OnFailure = None,
    skip_bad: options.SkipBad = False,
    summary: options.Summary = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    context.meta["debug"] = debug
    settings = load(
        {
            "base_url": base_url or None,
            "model": model,
            "api_key_env": api_key_env,
            "judge": judge,
            "rubric": rubric,
            "scale": scale,
            "max_concurrent": max_concurrent,
            "rpm": rpm,
            "tpm": tpm,
            "budget": budget,
            "price": price,
            "timeout": timeout,
            "deadline": deadline,
            "cache": cache,
            "on_failure": on_failure,
            "local_model": local_model,
        }
    )
    check_cache(settings)
    job = Job(source, output, settings, summary=summary, quiet=quiet, skip_bad=skip_bad, debug=debug)
    run = Run(
        job,
        convene=lambda: convene(settings, is_agreed=yes),
        open_engine=lambda endpoints, observers: engine_for(settings, endpoints, observers),
        console=stderr(),
    )
    raise typer.Exit(run())
