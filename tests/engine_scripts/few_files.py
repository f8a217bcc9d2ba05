"""Score many samples in a process that may open few files: few_files.py URL LIMIT CLIENT."""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter

from plaudit import Engine, Rubric, Sample

url, limit, client = sys.argv[1], int(sys.argv[2]), sys.argv[3]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
with Engine(url, model="m", client=client, cache=sys.argv[4]) as engine:
    pending = engine.submit([Sample("2 + 2?", f"{n}") for n in range(400)], Rubric("Is it correct?"))
    verdicts = pending.result()
statuses = Counter(verdict.status.value for verdict in verdicts)
print(json.dumps({"statuses": statuses, "attempts": max(verdict.attempts for verdict in verdicts)}))
