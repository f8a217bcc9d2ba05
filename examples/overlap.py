"""Judge while the GPU works: submit, compute on, collect. Runs offline, on a simulated judge.

python examples/overlap.py
"""

import asyncio
import time

from plaudit import Engine, Rubric, Sample
from plaudit.simulator import Latency, Queue, Scenario, SimulatedTransport

# A judge that takes 0.2 s for an answer, and works on 32 at once; yours is a URL: Engine("http://host/v1").
SERVER = Scenario(latency=Latency().scaled_to(0.2), capacity=Queue(slots=32))
JUDGE = Rubric("Is the sum correct?", scale=(0, 10))


def rollouts(step: int) -> list[Sample]:
    """Eight prompts, eight answers each: a group is the answers to one prompt."""
    return [
        Sample(f"What is {step} + {prompt}?", f"It is {step + prompt + answer}.", group=f"prompt {prompt}")
        for prompt in range(8)
        for answer in range(8)
    ]


def gpu_works(seconds: float) -> None:
    time.sleep(seconds)  # log-probabilities, the reference model, ...


with Engine(
    "http://judge/v1", model="judge", cache=None, transport=lambda _: SimulatedTransport(SERVER)
) as engine:
    pending = engine.submit(rollouts(step=1), JUDGE)  # returns at once
    gpu_works(1.0)
    start = time.perf_counter()
    verdicts = pending.result(timeout=300)
    print(f"1. {len(verdicts)} verdicts, mean {pending.summary.score_mean:.1f}; the judge took")
    print(
        f"   {pending.summary.seconds:.1f} s, and the GPU waited {time.perf_counter() - start:.1f} s for it"
    )

    for done, (group, members) in enumerate(engine.submit(rollouts(step=2), JUDGE).as_completed(by="group")):
        best = max(members, key=lambda member: member[1].score or 0.0)
        if done < 3:  # an update can begin with the first group that is complete
            print(f"2. {group} is complete: {len(members)} verdicts, the best for answer {best[0] % 8}")

    verdicts = asyncio.run(engine.ascore(rollouts(step=3), JUDGE))  # from code with a loop of its own
    print(f"3. {sum(verdict.is_valid for verdict in verdicts)} verdicts, awaited")
