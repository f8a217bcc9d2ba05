"""Scores what another process has scored, and says where the verdicts came from. URL"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from loopback import JUDGE, samples

from plaudit import Engine

with Engine(sys.argv[1], model="m") as engine:
    print(*[verdict.source for verdict in engine.score(samples(3), JUDGE)])
