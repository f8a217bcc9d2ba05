"""TRL: a judge as a reward function for GRPOTrainer and RLOOTrainer, and judging behind log-probs."""

from plaudit.integrations.trl.overlap import overlap
from plaudit.integrations.trl.reward import reward_function

__all__ = ["overlap", "reward_function"]
