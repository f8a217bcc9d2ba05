"""Which rule scores a data source: the names that public training sets go by."""

from __future__ import annotations

MATH = frozenset({
    "openai/gsm8k", "gsm8k",
    "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500", "MATH", "math",
    "math500", "amc23", "minerva_math", "olympiadbench", "hiyouga/geometry3k", "hiyouga/math12k",
    "BytedTsinghua-SIA/DAPO-Math-17k", "agentica-org/DeepScaleR-Preview-Dataset",
})  # fmt: skip
MATH_PREFIXES = ("aime", "math_dapo", "numina_", "AI-MO/", "Maxwell-Jia/AIME")


def is_mathematical(data_source: str) -> bool:
    """Whether answers of this data source are checked as mathematics."""
    return data_source in MATH or data_source.lower().startswith(tuple(p.lower() for p in MATH_PREFIXES))
