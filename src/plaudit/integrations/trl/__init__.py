"""TRL: a judge as a reward function for GRPOTrainer and RLOOTrainer, and judging behind log-probs.

from plaudit import Rubric
from plaudit.integrations.trl import overlap, reward_function

reward = reward_function(Rubric("Is it correct and brief?"), url="http://localhost:8000/v1", model="judge")
trainer = overlap(GRPOTrainer)(model=..., reward_funcs=reward, args=..., train_dataset=...)
"""

from plaudit.integrations.trl.overlap import overlap
from plaudit.integrations.trl.reward import reward_function

__all__ = ["overlap", "reward_function"]
