"""Whether a judge can be trusted: attacks on it, labelled pairs for it, canaries among its samples.

attack_probe can it be talked into a score?  attack_strings: by wrong answers and what is added to them
calibration  does it agree with labels, with itself, with mere length?  pairs: the files it reads
comparison   do two judges agree?
canary       wrong answers in live traffic
views        what the report of each shows
"""

from plaudit.audit.attack_probe import Probe, ProbeResult
from plaudit.audit.calibration import Calibration, calibrate
from plaudit.audit.canary import Canaries, CanaryPassed, Mixed
from plaudit.audit.comparison import AnswerComparison, Comparison, Contender, compare, compare_answers
from plaudit.audit.pairs import Pair, read_pairs, samples_of

__all__ = [
    "AnswerComparison",
    "Calibration",
    "Canaries",
    "CanaryPassed",
    "Comparison",
    "Contender",
    "Mixed",
    "Pair",
    "Probe",
    "ProbeResult",
    "calibrate",
    "compare",
    "compare_answers",
    "read_pairs",
    "samples_of",
]
