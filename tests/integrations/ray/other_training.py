"""Another training on the same cluster: what it may share, and what it may not."""

import sys

import ray

from plaudit import ConfigError, Rubric, Sample
from plaudit.integrations.ray import SharedEngine

address, url = sys.argv[1:]
ray.init(address=address, log_to_driver=False)
with SharedEngine(url, model="m", rpm=30, cache=None) as own:
    print(own.name)
    try:
        SharedEngine(url, model="m", rpm=30, cache=None, share="judge")
    except ConfigError as error:
        print(str(error).split(": ", 1)[1].split(". ")[0])
    with SharedEngine(url, model="m", rpm=60, cache=None, share="judge") as common:
        print(common.name)
        print(common.score([Sample("What is the capital of France?", "Paris")], Rubric("Right?"))[0].status)
