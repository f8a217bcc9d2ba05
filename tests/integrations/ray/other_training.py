"""Another training on the same cluster: what it may share, and what it may not."""

import os
import sys
from typing import Any

import ray

from plaudit import ConfigError, Rubric, Sample
from plaudit.integrations.ray import SharedEngine


class Own(Rubric):
    """A judge that only this script knows."""


address, url, cache = sys.argv[1:]
settings: dict[str, Any] = {"model": "m", "api_key": os.environ["KEY"], "cache": cache, "hedge": False}
ray.init(address=address, log_to_driver=False)
with SharedEngine(url, **settings, max_concurrent=9) as own:
    print(own.name)
    try:
        SharedEngine(url, **settings, max_concurrent=9, share="judge")
    except ConfigError as error:
        print(str(error).split(": ", 1)[1].split(". ")[0])
    with SharedEngine(url, **settings, max_concurrent=5, share="judge") as common:
        print(common.name)
        print(common.score([Sample("What is the capital of France?", "Paris")], Own("Right?"))[0].status)
