"""Scores samples on a verdict file that another process uses too. URL CACHE COUNT AT_ONCE"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from loopback import JUDGE, samples

from plaudit import Engine

url, cache, count, at_once = sys.argv[1:]
with Engine(url, model="m", cache=cache, max_concurrent=int(at_once), hedge=False) as engine:
    verdicts = engine.score(samples(int(count)), JUDGE)
print(sum(verdict.is_valid for verdict in verdicts), flush=True)
