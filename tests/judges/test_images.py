"""Pictures in prompts and responses: they reach judges that see, and count in keys and budgets."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from complaints import about

from plaudit import Endpoint, Group, Pairwise, Rubric, Sample, get_request_hash
from plaudit.errors import ConfigError, RequestRefused, Unsendable
from plaudit.policy.budget import IMAGE_TOKENS, token_bound
from plaudit.rows import read_sample
from plaudit.transports.client import Answer
from plaudit.transports.http import HttpTransport
from plaudit.transports.ollama import Ollama
from plaudit.transports.openai import OpenAI
from plaudit.types import ChatRequest

PNG = "data:image/png;base64,iVBORw0KGgo="
OTHER = "https://pictures.example/cat.png"
RUBRIC = Rubric("Does it say what is in the picture?")


def task(picture: Any = PNG) -> list[Any]:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": picture}}]
    return [{"role": "user", "content": parts}]


def asked(prompt: Any, response: Any = "A cat.") -> ChatRequest:
    request = RUBRIC.render(Sample(prompt, response))
    assert isinstance(request, ChatRequest)
    return request


def test_pictures_go_with_the_request_in_order_and_the_text_says_where_they_stand() -> None:
    answer = [{"role": "assistant", "content": [{"type": "image", "image": OTHER}]}]
    request = asked(task(), answer)
    assert request.images == (PNG, OTHER)
    assert "What is this?[image]" in request.messages[-1]["content"]


def test_groups_see_the_pictures_of_the_task_and_refuse_those_of_responses() -> None:
    samples = [Sample(task(), answer, group="g") for answer in ("A cat.", "A dog.")]
    (question,) = Group("Is it right?").split(samples)
    request = question.judge.render(question.sample)
    assert isinstance(request, ChatRequest)
    assert request.images == (PNG,)
    drawn: list[Any] = [{"role": "assistant", "content": [{"type": "image", "image": OTHER}]}]
    with pytest.raises(ConfigError, check=about("response")):
        list(Group("Is it right?").split([samples[0], Sample(task(), drawn, group="g")]))


PARTS: list[Any] = [
    {"type": "text", "text": "A cat like this:"},
    {"type": "image_url", "image_url": {"url": OTHER}},
]
DRAWN: list[Any] = [{"role": "assistant", "content": [{"type": "image", "image": PNG}]}]


def questions(judge: Any, *samples: Sample) -> list[ChatRequest]:
    made = [question.judge.render(question.sample) for question in judge.split(samples)]
    assert all(isinstance(request, ChatRequest) for request in made)
    return made


def test_pictures_of_the_reference_follow_those_of_the_task() -> None:
    sample = read_sample(task(), DRAWN, PARTS)
    assert sample.reference == "A cat like this:[image]"
    request = RUBRIC.render(sample)
    assert isinstance(request, ChatRequest)
    assert request.images == (PNG, OTHER, PNG)
    group = [read_sample(task(), answer, PARTS, group="g") for answer in ("A cat.", "A dog.")]
    (request,) = questions(Group("Is it right?"), *group)
    assert request.images == (PNG, OTHER)


def test_a_comparison_with_the_reference_shows_the_pictures_of_both_in_either_order() -> None:
    judge = Pairwise("Which shows the cat better?")
    one, other = questions(judge, read_sample("Draw a cat.", DRAWN, PARTS))
    assert (one.images, other.images) == ((PNG, OTHER), (OTHER, PNG))


def test_the_same_words_with_other_pictures_are_compared_and_with_the_same_ones_tie() -> None:
    judge = Pairwise("Which shows the cat better?")
    assert len(questions(judge, read_sample("Draw a cat.", DRAWN, [PARTS[1]]))) == 2
    assert questions(judge, read_sample("Draw a cat.", DRAWN, DRAWN[0]["content"])) == []


def test_a_file_among_content_parts_is_shown_by_its_text_or_sent_as_a_pdf() -> None:
    pdf = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7 ...").decode()
    files: list[Any] = [
        {"type": "file", "file": {"filename": "a.py", "content": "print(1)"}},
        {"type": "input_file", "filename": "b.txt", "file_data": "data:text/plain;base64,aGVsbG8="},
        {"type": "file", "file": {"filename": "c.pdf", "file_data": pdf}},
    ]
    request = RUBRIC.render(read_sample("Write it.", "print(1)", files))
    assert isinstance(request, ChatRequest)
    shown = request.messages[-1]["content"]
    assert "[file a.py]\nprint(1)" in shown
    assert "[file b.txt]\nhello" in shown
    assert "[file c.pdf]" in shown
    assert request.images == (pdf,)
    _, body = OpenAI("m").encode(request)
    assert json.loads(body)["messages"][-1]["content"][1]["file"]["file_data"] == pdf
    assert token_bound(request)[0] > IMAGE_TOKENS
    with pytest.raises(Unsendable):
        Ollama("m").encode(request)


@pytest.mark.parametrize(
    "file",
    [{"file_id": "file-1"}, {"filename": "x.docx", "file_data": "data:;base64,/wD+"}, {"path": "a.txt"}],
)
def test_a_file_that_cannot_be_shown_is_named(file: Any) -> None:
    with pytest.raises(ConfigError):
        read_sample("Write it.", "print(1)", [{"type": "file", "file": file}])


def test_a_ground_truth_that_is_a_list_of_objects_stays_json() -> None:
    sample = read_sample("Call it.", "f()", [{"type": "function", "name": "f"}])
    assert sample.reference == '[{"type": "function", "name": "f"}]'


@pytest.mark.parametrize("judge", [Group("Right?"), Pairwise("Which?", against="group"), Pairwise("Which?")])
def test_the_tools_that_there_were_are_shown_to_judges_that_compare(judge: Any) -> None:
    tools = [{"type": "function", "function": {"name": "search", "parameters": {}}}]
    samples = [
        Sample("Find it.", answer, "Here.", group="g", tools=tools) for answer in ("Found.", "Not found.")
    ]
    for request in questions(judge, *samples):
        assert '"name": "search"' in request.messages[-1]["content"]


def test_rows_and_samples_with_the_same_picture_ask_the_same() -> None:
    data = bytes.fromhex("89504e470d0a1a0a")
    shapes: list[Any] = [
        {"type": "image_url", "image_url": {"url": PNG}},
        {"type": "input_image", "image_url": PNG},
        {"type": "image", "image": data},
        {"type": "image", "image": {"bytes": data, "path": None}},
        {"type": "image", "image": "iVBORw0KGgo="},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    ]
    samples = [read_sample([{"role": "user", "content": ["Which?", part]}], "A cat.") for part in shapes]
    of_ollama = [{"role": "user", "content": "Which?[image]", "images": ["iVBORw0KGgo="]}]
    made = {get_request_hash(asked(prompt)) for prompt in (*(one.prompt for one in samples), of_ollama)}
    assert len(made) == 1


def test_another_picture_is_another_request_and_counts_in_budgets() -> None:
    one, other, none = asked(task()), asked(task(OTHER)), asked("What is this?[image]")
    assert len({get_request_hash(request) for request in (one, other, none)}) == 3
    assert token_bound(one)[0] == token_bound(none)[0] + IMAGE_TOKENS


def test_openai_and_ollama_get_them_in_their_own_form() -> None:
    request = asked(task())
    _, body = OpenAI("m").encode(request)
    text, picture = json.loads(body)["messages"][-1]["content"]
    assert text["type"] == "text"
    assert picture == {"type": "image_url", "image_url": {"url": PNG}}
    _, body = Ollama("m").encode(request)
    assert json.loads(body)["messages"][-1]["images"] == ["iVBORw0KGgo="]
    with pytest.raises(Unsendable):
        Ollama("m").encode(asked(task(OTHER)))


@pytest.mark.parametrize("picture", ["/etc/passwd", "cat.png", 7])
def test_what_is_no_picture_is_named(picture: Any) -> None:
    with pytest.raises(ConfigError, check=about("prompt")):
        RUBRIC.render(Sample(task(picture), "A cat."))


class Server:
    """An HTTP client of a server that answers each request alike."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        self.posts = 0
        self._answer = Answer(status, {}, json.dumps(body).encode())

    async def post(self, path: str, body: bytes, on_chunk: Any = None) -> Answer:
        self.posts += 1
        return self._answer

    async def close(self) -> None:
        pass


async def send_twice(server: Server) -> list[str]:
    transport = HttpTransport(Endpoint("http://judge/v1", model="m"), OpenAI("m"), server)
    said = []
    for _ in range(2):
        with pytest.raises(RequestRefused) as refused:
            await transport.send(asked(task()))
        said.append(str(refused.value))
    return said


@pytest.mark.parametrize(
    "said",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "m is not a multimodal model",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "this model is missing data required for image input",
        "At most 0 image(s) may be provided in one prompt.",
        "messages[1].content must be a string",
        "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text`",
    ],
)
def test_an_endpoint_that_cannot_see_says_so_once(said: str, caplog: pytest.LogCaptureFixture) -> None:
    server = Server(400, {"error": {"message": said}})
    first, second = asyncio.run(send_twice(server))
    assert first == second
    assert server.posts == 1, "and is not asked again"
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "said",
    [
        "The image data you provided is not a valid image.",
        "Unsupported MIME type: image/tiff",
        "You uploaded an unsupported image. Please make sure your image is valid.",
    ],
)
def test_one_broken_picture_says_nothing_about_the_next(said: str) -> None:
    server = Server(400, {"error": {"message": said}})
    asyncio.run(send_twice(server))
    assert server.posts == 2


def test_an_endpoint_that_has_seen_a_picture_is_not_taken_for_blind() -> None:
    async def run() -> int:
        seen = {"choices": [{"message": {"content": "a cat"}, "finish_reason": "stop"}]}
        server = Server(200, seen)
        transport = HttpTransport(Endpoint("http://judge/v1", model="m"), OpenAI("m"), server)
        await transport.send(asked(task()))
        server._answer = Answer(400, {}, b'{"error": {"message": "animated images are not supported"}}')
        for _ in range(2):
            with pytest.raises(RequestRefused):
                await transport.send(asked(task()))
        return server.posts

    assert asyncio.run(run()) == 3
