"""What a page takes for granted: the names that its code uses and that belong to the reader's own program."""

from __future__ import annotations

FRAMEWORKS = """
import importlib
from types import ModuleType, SimpleNamespace

from stand_in import documented

class Base:
    def __init__(self, *positional, **named): self.__dict__.update(named)
    def __init_subclass__(cls, **named): pass
    def __class_getitem__(cls, _): return cls
    @classmethod
    def run_webserver(cls): assert cls.verify

def found(path):
    module, _, name = path.replace(":", ".").rpartition(".")
    return getattr(importlib.import_module(module), name)

async def gather_trajectory_groups(groups, after_each):
    return [await after_each(group) for group in groups]

class Trajectory(Base): pass
class TrajectoryGroup(Base):
    def __init__(self, trajectories, exceptions=(), **_): self.trajectories = list(trajectories)
    def __iter__(self): return iter(self.trajectories)

documented("art", Trajectory=Trajectory, TrajectoryGroup=TrajectoryGroup,
           gather_trajectory_groups=gather_trajectory_groups)
documented("skyrl_gym.envs.base_text_env", BaseTextEnv=Base, BaseTextEnvStepOutput=dict)
documented("areal.workflow.rlvr", RLVRWorkflow=Base)
documented("nemo_gym.base_resources_server", BaseVerifyRequest=Base, BaseVerifyResponse=Base,
           SimpleResourcesServer=Base)
documented("nemo_gym.judge", JudgeError=type("JudgeError", (Exception,), {}))
documented("openenv.core.rubrics", Rubric=Base)
documented("openenv.core.env_server.interfaces", Environment=Base)
documented("tinker", ModelInput=Base)
documented("tinker_cookbook.renderers", get_text_content=str)
documented("tinker_cookbook.rl.types", Env=Base, EnvGroupBuilder=Base, StepResult=Base)
documented("swift.rewards", AsyncORM=Base, orms={})
documented("verifiers", Rubric=Base, SingleTurnEnv=Base)
documented("verifiers.v1", Judge=Base, JudgeConfig=Base)
import art
from pathlib import Path

Path("open_instruct").mkdir(exist_ok=True)
Path("open_instruct/__init__.py").touch()
Path("open_instruct/grpo_fast.py").touch()
Path("open_instruct/ground_truth_utils.py").write_text(
    "class VerifierFunction:\\n"
    "    def __init__(self, *a, **k): pass\\n"
    "class VerificationResult: pass\\n"
    "class ToolWithCode: pass\\n"
)
import sys

sys.path.insert(0, ".")
vf, RLDataset, dataset = importlib.import_module("verifiers"), Base, []
register = lambda id, entry_point: found(entry_point)
trainer = SimpleNamespace(train=lambda workflow, workflow_kwargs: found(workflow))
model, scenarios = None, []
rollout = lambda *_: Trajectory()
from plaudit import Rubric
"""

PRELUDES = {
    "frameworks.md": FRAMEWORKS,
    "rewards.md": """
from plaudit import Rubric, Sample, Status, Verdict

samples = [Sample("What is 7 times 8?", text, group="a") for text in ("56", "54")]
is_correct = lambda sample: float(sample.response == "56")
pending = type("Done", (), {"result": lambda self: [Verdict(0.8, Status.OK), Verdict(0.4, Status.OK)]})()
token_counts = [10, 12]
response, truth, name, info = "56", "", "essays", {"question": "What is 7 times 8?"}
sources, responses, truths, infos = [name] * 2, ["56", "54"], [truth] * 2, [info] * 2
""",
    "overlap.md": """
from plaudit import Engine, Rubric, Sample
from plaudit.rewards import advantages

judge = Rubric("Is it correct?")
samples = [Sample(f"What is {n // 4} + 1?", str(n), group=str(n // 4)) for n in range(8)]
engine = Engine("http://localhost:8000/v1", model="judge", cache="memory")
import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight])
loss = lambda rows, gains: -weight * torch.tensor([gain or 0.0 for gain in gains])
tokens_of_the_whole_batch = 80
""",
    "trl.md": """
from tiny_policy import save_tiny_policy
from pathlib import Path

save_tiny_policy(Path("policy"))
""",
    "verl-legacy.md": """
from types import SimpleNamespace

import plaudit.integrations.verl.legacy_names
from legacy_data import Letters, batch as rows_of
from plaudit.integrations.verl import BatchRewardManager, LengthPenaltyConfig, LengthPenaltyRewardManager

tokenizer = Letters()
batch = rows_of(["It is 4.", "Four."])
config = LengthPenaltyConfig(model_name="m", enable_rule=False)
reward_fn = LengthPenaltyRewardManager(tokenizer=tokenizer, num_examine=0, length_penalty_config=config)
actor_rollout_wg = SimpleNamespace(compute_log_prob=lambda batch: None)
ref_policy_wg = SimpleNamespace(compute_ref_log_prob=lambda batch: None)
""",
    "ray.md": "",
}
