"""An agent loop for verl's V1 trainers without a model: it says which prompt and which session it is."""

from __future__ import annotations

from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput


class SayingLoop:
    """Answers `answer <prompt's number> <session>`; sessions that the data calls lost raise instead."""

    def __init__(self, tokenizer: Any, **_: Any) -> None:
        self._tokenizer = tokenizer

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        session = row["session_id"]
        info = row["extra_info"]
        if session in info.get("lost", ()):
            raise RuntimeError("this rollout is lost")
        first = self._output("lost 199 199 199")  # a longer sequence of the same trajectory
        return [first, self._output(f"answer {info['index']} {session}")]

    def _output(self, text: str) -> AgentLoopOutput:
        tokens = self._tokenizer.encode(text)
        return AgentLoopOutput(
            prompt_ids=[3, 3, 3], response_ids=tokens, response_mask=[1] * len(tokens), metrics={}
        )
