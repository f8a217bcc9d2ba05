"""GRPO with a language-model judge, complete in one file, and four ways to keep the GPU from waiting for it.

    python examples/grpo.py                     # a tiny model: a minute on a CPU, and the reward rises
    python examples/grpo.py --overlap none      # the same rewards, with the waits in full
    python examples/grpo.py --overlap d         # one step off-policy
    python examples/grpo.py --size 0.6b --tokens 256 --learning-rate 1e-5        # a real size, on a GPU

It needs torch and transformers. What can be switched on, alone or together:

    a   each response goes to the judge as it finishes, while the others are still being generated
    b   the old and the reference log-probs are computed before the verdicts are waited for
    c   gradients are accumulated group by group, in the order in which the groups' verdicts arrive
    d   the next batch is generated while this one is judged

a, b and c change when things are done, and nothing else: the loss is a sum over groups, divided by a number
that is known before any verdict is, and a sum has no order. So they are on-policy and exact, and give the
weights that no overlap gives, to rounding. With d a batch is one update old when it is learned from; the
ratio to the old log-probs, and its clipping, see to that.

The task is a toy, so that it can be learned in a minute from nothing: write vowels. The judge is a toy too:
it counts them, but takes its time, like a real one. For your own: `--url http://host/v1 --model NAME`,
another JUDGE, `from_pretrained` in `new_model`, and your tokenizer in `text_of`.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from transformers import DynamicCache, Qwen2Config, Qwen2ForCausalLM

from plaudit import ChatRequest, Engine, Pending, Reply, Request, Rubric, Sample, Verdict
from plaudit.rewards import advantages
from plaudit.simulator import Latency, Queue, Scenario, SimulatedTransport

Tensor = Any  # torch.Tensor, for readers whose type checker has no torch
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TASK = "Continue these letters, with as many vowels as you can: "
JUDGE = Rubric(
    "What share of the letters are vowels? None is 0, half of them is 5, all is 10.", scale=(0, 10)
)
SERVER = Scenario(latency=Latency().scaled_to(0.15), capacity=Queue(slots=16))
"""How fast the toy judge is: 0.15 s for a call on average, 16 calls at once."""
SIZES: dict[str, dict[str, int]] = {
    "tiny": {
        "vocab_size": 27,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    "0.6b": {  # Qwen2's shape at its smallest, 630 million parameters with an output layer of its own
        "vocab_size": 151_936,
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Which of the four ways are switched on."""

    stream: bool = False
    log_probs_first: bool = False
    by_arrival: bool = False
    ahead: bool = False

    @classmethod
    def of(cls, letters: str) -> Overlap:
        if letters != "none" and (not letters or set(letters) - set("abcd")):
            raise argparse.ArgumentTypeError(
                f"{letters!r} is unknown; use letters of abcd, like abc, or none"
            )
        return cls(*(letter in letters for letter in "abcd")) if letters != "none" else cls()


@dataclass(frozen=True, slots=True)
class Settings:
    """What is trained on, and how."""

    prompts: int = 8
    group: int = 8
    """Responses to each prompt."""
    prompt_tokens: int = 4
    max_tokens: int = 32
    learning_rate: float = 3e-3
    beta: float = 0.01
    """Weight of the divergence from the reference model."""
    clip: float = 0.2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Responses on their way through the judge. A row is a prompt and its response; a group's rows adjoin."""

    samples: list[Sample]
    tokens: Tensor  # (rows, prompt + longest response); what stands behind a response is never looked at
    lengths: list[int]
    """Tokens of each response, the end token included."""
    pending: Pending
    log_probs: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Old and reference log-probs by the first row of a group, as far as computed: (rows, tokens) each."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step in numbers."""

    reward: float
    """Mean score, of the responses that have one."""
    failed: int
    """Responses without a verdict: no advantage, hence no say."""
    wait_s: float
    """Seconds the device stood still because verdicts were missing."""
    seconds: float


class Scorer(Protocol):
    """What the trainer needs of an engine."""

    def submit(self, samples: Sequence[Sample], judge: Rubric) -> Pending: ...


class WaitClock:
    """How long the device stood still because verdicts were missing.

    On a GPU by CUDA events, one before and one after the host waits. The first is reached when all work given
    to the GPU before is done, the second when the host is back: between them the GPU had nothing to do. If
    the verdicts come while it is still at work, that is no wait. On a CPU work and waiting never overlap, and
    the wall clock says the same.
    """

    def __init__(self, device: str) -> None:
        self._is_gpu = device.startswith("cuda")
        self._spans: list[tuple[Any, Any]] = []

    @contextmanager
    def waiting(self) -> Iterator[None]:
        begin = self._now()
        yield
        self._spans.append((begin, self._now()))

    def read(self) -> float:
        """Seconds waited since the last reading; waits for the GPU to finish its work."""
        if self._is_gpu:
            torch.cuda.synchronize()
            waited = sum(begin.elapsed_time(end) for begin, end in self._spans) / 1000
        else:
            waited = sum(end - begin for begin, end in self._spans)
        self._spans.clear()
        return float(waited)

    def _now(self) -> Any:
        if not self._is_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class Trainer:
    """GRPO: generate, have it judged, compare the responses of a group, make the better ones likelier."""

    def __init__(
        self,
        policy: Any,
        engine: Scorer,
        overlap: Overlap,
        settings: Settings,
        *,
        lengths_of: Callable[[int], Sequence[int]] | None = None,
    ) -> None:
        """`lengths_of` forces the length of each response of a step, for measurements."""
        self.policy = policy
        self.device = str(next(policy.parameters()).device)
        self._reference = copy.deepcopy(policy).requires_grad_(False)
        self._optimizer = torch.optim.AdamW(policy.parameters(), lr=settings.learning_rate, weight_decay=0.0)
        self._engine = engine
        self._overlap = overlap
        self._settings = settings
        self._lengths_of = lengths_of
        self._clock = WaitClock(self.device)

    def train(self, steps: int) -> Iterator[Step]:
        """Do so many steps. With d, each ends with the next batch already on its way."""
        held: Batch | None = None
        for number in range(steps + self._overlap.ahead):
            started = time.perf_counter()
            batch = self.rollout(number) if number < steps else None
            if self._overlap.ahead:
                batch, held = held, batch
            if batch is not None:
                scores = self.learn(batch)
                valid = [score for score in scores if score is not None]
                mean = sum(valid) / max(len(valid), 1)
                waited = self._clock.read()
                yield Step(mean, len(scores) - len(valid), waited, time.perf_counter() - started)

    # -- responses ----------------------------------------------------------------------------------------

    def rollout(self, number: int) -> Batch:
        """Generate responses and hand them to the judge."""
        tokens, samples, lengths = self._generate(number)
        # With a, all of these have been asked for: what is still under way is shared, what has its verdict
        # comes from the engine's cache, and nothing is paid for twice. The result is that of one big batch.
        batch = Batch(samples, tokens, lengths, self._engine.submit(samples, JUDGE))
        if self._overlap.log_probs_first or self._overlap.ahead:  # d: before the weights change
            for first in range(0, len(samples), self._settings.group):
                batch.log_probs[first] = self._old_and_reference(batch, self._rows(first))
        return batch

    def _generate(self, number: int) -> tuple[Tensor, list[Sample], list[int]]:
        """Sample all responses together, a token at a time; a row leaves the batch as it finishes."""
        chance = torch.Generator(self.device).manual_seed(1_000_003 * self._settings.seed + number)
        prompts = self._prompts(chance)  # (rows, prompt)
        start, end = prompts.shape[1], self.policy.config.eos_token_id
        count, longest = len(prompts), self._settings.max_tokens
        tokens = torch.cat([prompts, prompts.new_full((count, longest), end)], 1)
        forced = None if self._lengths_of is None else self._on_device(self._lengths_of(number))
        samples: list[Sample | None] = [None] * count
        lengths = [0] * count
        rows = torch.arange(count, device=self.device)  # those still in the batch
        cache, last = DynamicCache(config=self.policy.config), prompts
        with torch.no_grad():
            for length in range(1, longest + 1):
                logits = self.policy(last, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
                if forced is not None:
                    logits[..., end] = -torch.inf
                last = torch.multinomial(logits[:, -1].float().softmax(-1), 1, generator=chance)  # (rows, 1)
                tokens[rows, start + length - 1] = last[:, 0]
                is_over = last[:, 0] == end if forced is None else forced[rows] <= length
                over = rows[is_over].tolist() if length < longest else rows.tolist()
                for row in over:
                    lengths[row] = length
                    samples[row] = self._finished(number, row, tokens[row, : start + length].tolist())
                if len(over) == len(rows):
                    break
                if over:
                    stays = (~is_over).nonzero()[:, 0]
                    rows, last = rows[stays], last[stays]
                    cache.batch_select_indices(stays)
        return tokens, [sample for sample in samples if sample is not None], lengths

    def _finished(self, number: int, row: int, tokens: list[int]) -> Sample:
        start, group = self._settings.prompt_tokens, row // self._settings.group
        end = self.policy.config.eos_token_id
        prompt, response = text_of(tokens[:start], end), text_of(tokens[start:], end)
        sample = Sample(TASK + prompt, response, group=f"{number}/{group}")
        if self._overlap.stream:
            self._engine.submit([sample], JUDGE)
        return sample

    def _prompts(self, chance: Any) -> Tensor:
        shape = (self._settings.prompts, self._settings.prompt_tokens)
        drawn = torch.randint(len(LETTERS), shape, generator=chance, device=self.device)
        return drawn.repeat_interleave(self._settings.group, dim=0)

    # -- what is learned from them ------------------------------------------------------------------------

    def learn(self, batch: Batch) -> list[float | None]:
        """One update from the whole batch; the scores it was based on."""
        scores: list[float | None] = []
        for rows, verdicts in self._judged(batch):
            group = [verdict.score for verdict in verdicts]
            self._accumulate(batch, rows, advantages(group, [0] * len(group)))
            scores += group
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return scores

    def _judged(self, batch: Batch) -> Iterator[tuple[slice, list[Verdict]]]:
        """The groups with their verdicts: as these arrive with c, otherwise all of them at the end."""
        if not self._overlap.by_arrival:
            with self._clock.waiting():
                verdicts = batch.pending.result()
            for first in range(0, len(verdicts), self._settings.group):
                rows = self._rows(first)
                yield rows, verdicts[rows]
            return
        arriving = batch.pending.as_completed(by="group")
        while True:
            with self._clock.waiting():
                arrived = next(arriving, None)
            if arrived is None:
                return
            members = arrived[1]
            yield self._rows(members[0][0]), [verdict for _, verdict in members]

    def _accumulate(self, batch: Batch, rows: slice, advantage: Sequence[float]) -> None:
        """Add a group's share of the gradient. No weight changes before the last group has added its own."""
        old, reference = batch.log_probs.get(rows.start) or self._old_and_reference(batch, rows)
        new = self._log_probs(self.policy, batch, rows)  # (rows, tokens)
        gain = self._on_device(advantage).to(new.dtype)[:, None]
        ratio = (new - old).exp()
        clipped = ratio.clamp(1 - self._settings.clip, 1 + self._settings.clip)
        away = reference - new
        loss = self._settings.beta * (away.exp() - away - 1) - torch.minimum(ratio * gain, clipped * gain)
        lengths = self._on_device(batch.lengths[rows])
        is_response = torch.arange(new.shape[1], device=self.device) < lengths[:, None]
        all_tokens = sum(batch.lengths)  # of all groups: known before any verdict is
        ((loss * is_response).sum() / all_tokens).backward()

    def _old_and_reference(self, batch: Batch, rows: slice) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return self._log_probs(self.policy, batch, rows), self._log_probs(self._reference, batch, rows)

    def _log_probs(self, model: Any, batch: Batch, rows: slice) -> Tensor:
        """Of each token of each response in these rows: (rows, longest of them)."""
        longest = max(batch.lengths[rows])
        tokens = batch.tokens[rows, : self._settings.prompt_tokens + longest]
        logits = model(tokens[:, :-1], use_cache=False, logits_to_keep=longest).logits
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        said = logits.gather(2, tokens[:, -longest:, None])[:, :, 0]
        return said - logits.logsumexp(2)

    def _on_device(self, numbers: Sequence[float]) -> Tensor:
        return torch.tensor(numbers).to(self.device, non_blocking=True)  # else the host waits for the GPU

    def _rows(self, first: int) -> slice:
        return slice(first, first + self._settings.group)


def new_model(size: str, *, device: str, dtype: Any = torch.float32, seed: int = 0) -> Any:
    """A policy with random weights, which knows nothing; its last token ends a response."""
    shape = SIZES[size]
    end = shape["vocab_size"] - 1
    config = Qwen2Config(**shape, eos_token_id=end, pad_token_id=end, tie_word_embeddings=False)
    torch.manual_seed(seed)
    with torch.device(device):
        return Qwen2ForCausalLM(config).to(dtype)


def text_of(tokens: Sequence[int], end: int) -> str:
    """What tokens say, in the toy language in which every token is a letter."""
    return "".join(LETTERS[token % len(LETTERS)] for token in tokens if token != end)


class VowelJudge:
    """A judge that counts vowels, on a server that takes its time; a transport, as the engine has it."""

    def __init__(self, server: Scenario) -> None:
        self._transport = SimulatedTransport(server)
        self.server = self._transport.server

    async def send(self, request: Request) -> Reply:
        reply = await self._transport.send(request)
        assert isinstance(request, ChatRequest)
        found = re.search(r"<response-\w+>\n(.*)\n</response-", request.messages[-1]["content"], re.DOTALL)
        assert found is not None
        share = sum(letter in "aeiou" for letter in found[1]) / len(found[1])
        return replace(reply, text=json.dumps({"reason": "I counted.", "score": round(10 * share)}))

    async def close(self) -> None:
        await self._transport.close()


def open_engine(url: str | None, model: str) -> Engine:
    """With a cache in memory: what a submits early is then known, or under way, when all is asked for."""
    if url is not None:
        return Engine(url, model=model, cache="memory")
    return Engine("http://toy/v1", model=model, cache="memory", transport=lambda _: VowelJudge(SERVER))


def main() -> None:
    parser = argparse.ArgumentParser(description="GRPO with a judge, and four ways of not waiting for it.")
    parser.add_argument(
        "--overlap", type=Overlap.of, default="abc", help="letters of abcd, or none (default: abc)"
    )
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--tokens", type=int, default=32, help="the longest response")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--url", help="a judge of your own, like http://localhost:8000/v1")
    parser.add_argument("--model", default="judge", help="its model")
    options = parser.parse_args()
    settings = Settings(max_tokens=options.tokens, learning_rate=options.learning_rate, seed=options.seed)
    torch.set_float32_matmul_precision("high")
    if options.size == "tiny":
        torch.set_num_threads(1)  # so little work is done sooner by one
    policy = new_model(
        options.size, device=options.device, dtype=getattr(torch, options.dtype), seed=options.seed
    )
    waits, total = 0.0, 0.0
    with open_engine(options.url, options.model) as engine:
        trainer = Trainer(policy, engine, options.overlap, settings)
        print(" step   reward   GPU wait   total   failed")
        for number, step in enumerate(trainer.train(options.steps), 1):
            times = f"{step.wait_s:6.3f} s  {step.seconds:5.2f} s"
            print(f"{number:5}   {step.reward:6.2f}   {times}   {step.failed:6}")
            waits, total = waits + step.wait_s, total + step.seconds
    print(f"{trainer.device} waited {waits:.2f} s of {total:.2f} s: {100 * waits / total:.1f}%")


if __name__ == "__main__":
    main()
