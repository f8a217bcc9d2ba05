"""Leaves with a batch in flight and the engine open. URL CLIENT"""

import sys

from plaudit import Engine, Rubric, Sample

url, client = sys.argv[1:]
engine = Engine(url, model="m", client=client)
engine.score([Sample("What is 1 + 1?", "fast")], Rubric("Is it right?"))
pending = engine.submit(
    [Sample("What is 1 + 1?", str(number)) for number in range(100)], Rubric("Is it right?")
)
next(pending.as_completed())
print("leaving", flush=True)
