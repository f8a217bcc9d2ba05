"""Which endpoint, which key, which model: what is found out, and what is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from complaints import about

from plaudit.cli.endpoint_check import examine
from plaudit.config import Endpoint
from plaudit.errors import ConfigError
from plaudit.settings import Settings, endpoints_of, resolve
from plaudit.setup.endpoints import (
    OPENAI_MODEL,
    OPENAI_URL,
    is_local,
    judge_endpoints,
    require_keys,
    with_models,
)
from plaudit.setup.model_list import HttpAnswer, ask_models, once_ready
from plaudit.testing import run

LISTED = HttpAnswer(status=200, body={"data": [{"id": "m"}]})


class Server(ThreadingHTTPServer):
    """Answers every GET with one status and one body, or only its routes, and remembers the keys it saw."""

    status = 200
    body = b"{}"
    encoding = "identity"
    routes: dict[str, Any] | None = None

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.headers: list[str | None] = []
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def say(self, value: Any, status: int = 200) -> None:
        self.status = status
        self.body = value if isinstance(value, bytes) else json.dumps(value).encode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.keys.append(self.headers.get("Authorization"))
        self.server.headers.append(self.headers.get("Api-Key"))
        self.server.paths.append(self.path)
        if self.server.routes is not None:
            found = self.server.routes.get(self.path)
            self.server.say(found, status=404 if found is None else 200)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.send_header("Content-Encoding", self.server.encoding)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(self.server.body)

    def do_CONNECT(self) -> None:
        self.server.keys.append(self.headers.get("Authorization"))
        self.send_error(407)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def settings_for(**environment: str) -> Settings:
    return resolve({}, environment=environment, table={})


def the_model(server: Server, **environment: str) -> str:
    settings = settings_for(PLAUDIT_BASE_URL=server.url, **environment)
    (endpoint,) = with_models(endpoints_of(settings), settings)
    return endpoint.model


def test_settings_become_endpoints_with_key_and_price() -> None:
    settings = resolve(
        {"base_url": ["http://a/v1", "http://b:11434"], "model": "m", "price": (1.0, 2.0)},
        environment={"OPENAI_API_KEY": "sk-1"},
        table={},
    )
    first, second = endpoints_of(settings)
    assert (first.url, first.kind, first.model, first.key) == ("http://a/v1", "openai", "m", "sk-1")
    assert first.price is not None
    assert first.price.completion == 2.0
    assert second.kind == "ollama"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "export OPENAI_API_KEY="),
        ({"PLAUDIT_API_KEY_ENV": "MY_KEY", "MY_KEY": " "}, "export MY_KEY="),
    ],
)
def test_a_service_without_a_key_is_refused_with_the_remedy(environment: dict[str, str], words: str) -> None:
    settings = settings_for(PLAUDIT_BASE_URL="https://api.openai.com/v1", **environment)
    with pytest.raises(ConfigError, check=about("api_key_env", "api.openai.com", words)):
        require_keys(endpoints_of(settings), settings)


@pytest.mark.parametrize(
    "url", ["http://judge.example.com:8000/v1", "http://8.8.8.8/v1", "http://openai.com/v1"]
)
def test_a_server_is_not_refused_for_its_name(url: str) -> None:
    settings = settings_for(PLAUDIT_BASE_URL=url)
    require_keys(endpoints_of(settings), settings)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://192.168.0.7:11434", True),
        ("http://vllm:8000/v1", True),
        ("http://box.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_hosts_of_one_s_own_network_are_known(url: str, expected: bool) -> None:
    assert is_local(url) is expected


def test_the_only_model_is_taken(server: Server) -> None:
    server.say({"data": [{"id": "qwen"}]})
    assert the_model(server, OPENAI_API_KEY="sk-1") == "qwen"
    assert server.keys == ["Bearer sk-1"]


def test_a_model_that_is_listed_for_each_of_its_replicas_is_one(server: Server) -> None:
    server.say({"data": [{"id": "qwen"}, {"id": "qwen"}]})
    assert the_model(server, OPENAI_API_KEY="sk-1") == "qwen"


def test_the_only_model_of_ollama_is_taken(server: Server) -> None:
    server.say({"models": [{"name": "llama3.2:1b"}]})
    endpoint = Endpoint(server.url.removesuffix("/v1"), kind="ollama")
    assert with_models((endpoint,), Settings())[0].model == "llama3.2:1b"


def test_ollama_on_another_port_is_recognised_by_asking(server: Server) -> None:
    server.routes = {"/api/tags": {"models": [{"name": "llama3.2:1b"}]}}
    settings = settings_for(PLAUDIT_BASE_URL=server.url.removesuffix("/v1"))
    (endpoint,) = with_models(endpoints_of(settings), settings)
    assert (endpoint.kind, endpoint.model, endpoint.url) == (
        "ollama",
        "llama3.2:1b",
        server.url.removesuffix("/v1"),
    )


def test_another_server_on_ollama_s_port_is_recognised_by_asking(server: Server) -> None:
    server.routes = {"/v1/models": {"data": [{"id": "qwen"}]}}
    endpoint = Endpoint(server.url.removesuffix("/v1"), kind="ollama")
    (found,) = with_models((endpoint,), Settings())
    assert (found.kind, found.model, found.url) == ("openai", "qwen", server.url)


def test_a_model_that_is_named_is_not_asked_for(server: Server) -> None:
    assert the_model(server, PLAUDIT_MODEL="m") == "m"
    assert server.keys == []


def test_several_models_are_listed_to_choose_from(server: Server) -> None:
    server.say({"data": [{"id": f"m{number}"} for number in range(20)]})
    with pytest.raises(ConfigError, check=about("model", "m0, m1, ", " 8 more")):
        the_model(server)


@pytest.mark.parametrize("body", [{"data": []}, [], b"<html>", {"data": [{"no": "id"}]}])
def test_no_list_of_models_asks_for_the_name(server: Server, body: object) -> None:
    server.say(body)
    with pytest.raises(ConfigError, check=about("model", "/v1/models")):
        the_model(server)


def test_a_refused_key_is_named_by_its_variable_and_not_shown(server: Server) -> None:
    server.say({}, status=401)
    with pytest.raises(ConfigError, check=about("api_key_env", "OPENAI_API_KEY", "401")) as caught:
        the_model(server, OPENAI_API_KEY="sk-wrong")
    assert "sk-wrong" not in str(caught.value)
    with pytest.raises(ConfigError, check=about("api_key_env")):
        the_model(server)


def test_a_redirect_is_not_followed_with_the_key(server: Server) -> None:
    server.say({}, status=302)
    with pytest.raises(ConfigError, check=about("model", "302")):
        the_model(server, OPENAI_API_KEY="sk-1")
    assert len(server.keys) == 1


@pytest.mark.parametrize("route", ["/chat/completions", "/chat/completions/", "/completions"])
def test_a_route_in_place_of_the_base_url_is_told_apart(route: str) -> None:
    with pytest.raises(ConfigError, check=about("base_url", "PLAUDIT_BASE_URL=", "http://localhost:8000/v1")):
        endpoints_of(settings_for(PLAUDIT_BASE_URL=f"http://localhost:8000/v1{route}"))


def test_nobody_there_names_the_url_and_what_to_start(server: Server) -> None:
    endpoint = Endpoint("http://127.0.0.1:9/v1")
    with pytest.raises(
        ConfigError, match=r"no connection to http://127\.0\.0\.1:9/v1: Connection refused; start a server"
    ):
        with_models((endpoint,), Settings(deadline=0.01))
    with pytest.raises(ConfigError, check=about("", "`ollama serve`")):
        with_models((Endpoint("http://127.0.0.1:9", kind="ollama"),), Settings(deadline=0.01))


@pytest.mark.parametrize(("starts_at", "is_found"), [(20.0, True), (70.0, False)])
def test_a_server_that_starts_late_is_waited_for_and_that_is_told_once(
    starts_at: float, is_found: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask() -> HttpAnswer:
        if asyncio.get_running_loop().time() < starts_at:
            return HttpAnswer(error="no connection to e", may_pass=True)
        return LISTED

    answer = run(once_ready(Endpoint("http://e/v1"), ask, patience=60.0))
    assert (answer.models == ("m",)) == is_found
    assert caplog.messages == ["no connection to e. Still trying, for up to 60 s"]


@pytest.mark.parametrize(("patience", "ends_at"), [(60.0, 60.0), (5.0, 5.0), (0.01, 1.0)])
def test_a_server_that_accepts_and_says_nothing_is_told_of_soon_and_not_waited_for_beyond_the_deadline(
    patience: float, ends_at: float, caplog: pytest.LogCaptureFixture
) -> None:
    told_at: list[float] = []

    async def ask() -> HttpAnswer:
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            await asyncio.sleep(0.1)
            if caplog.messages and not told_at:
                told_at.append(loop.time())
        return LISTED

    async def main() -> float:
        models = await once_ready(Endpoint("http://e/v1"), ask, patience=patience)
        assert models.error is not None and "no answer in time" in models.error
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(ends_at, abs=1.0)
    if patience > 3.0:
        assert told_at == [pytest.approx(3.0, abs=0.2)]
        assert "no answer within 3 s" in caplog.messages[0] and len(caplog.messages) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_loads_its_model_is_one_that_may_be_waited_for(status: int, server: Server) -> None:
    server.say({"error": {"message": "Loading model"}}, status=status)
    assert ask_models(Endpoint(server.url)).may_pass
    server.say({"error": "no"}, status=500)
    assert not ask_models(Endpoint(server.url)).may_pass


def test_a_list_of_models_beyond_all_reason_is_not_read_to_its_end(server: Server) -> None:
    server.say(b'{"data": [' + b" " * (5 << 20) + b"]}")
    with pytest.raises(ConfigError, check=about("model", "4 MiB")):
        the_model(server)


def test_a_packed_list_of_models_is_cut_while_it_is_unpacked(server: Server) -> None:
    server.encoding = "gzip"
    server.say(gzip.compress(b" " * (64 << 20), compresslevel=1))
    with pytest.raises(ConfigError, check=about("model", "4 MiB")):
        the_model(server)


def test_the_query_of_a_base_url_goes_along(server: Server) -> None:
    server.say({"data": [{"id": "only"}]})
    settings = settings_for(PLAUDIT_BASE_URL=server.url + "?api-version=1")
    with_models(endpoints_of(settings), settings)
    assert server.paths == ["/v1/models?api-version=1"]


def test_the_headers_of_an_endpoint_go_along(server: Server) -> None:
    server.say({"data": [{"id": "only"}]})
    ask_models(Endpoint(server.url, headers={"Api-Key": "sk-1"}))
    assert server.headers == ["sk-1"]


def test_a_proxy_that_cannot_be_reached_is_named_and_its_password_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://me:hunter2@127.0.0.1:9")
    error = str(ask_models(Endpoint("http://judge.example/v1")).error)
    assert "through the proxy 127.0.0.1: Connection refused; check HTTP_PROXY" in error
    assert "hunter2" not in error


def test_a_password_in_netrc_is_not_read(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.say({"data": [{"id": "m"}]})
    ask_models(Endpoint(server.url))
    asyncio.run(examine(Endpoint(server.url)))
    assert set(server.keys) == {None}


def test_a_proxy_gets_no_key_of_ours(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server stands in for a proxy, which is asked for a tunnel to a secure endpoint."""
    host = server.url.removesuffix("/v1").replace("http://", "http://me:hunter2@")
    monkeypatch.setenv("https_proxy", host)
    endpoint = Endpoint("https://judge.example/v1", api_key="sk-secret")
    models = ask_models(endpoint)
    findings = asyncio.run(examine(endpoint))
    assert server.keys == [None, None]
    for said in (str(models.error), str(findings.models.error)):
        assert "hunter2" not in said
        assert "judge.example" in said


@pytest.mark.parametrize(
    "url", ["http://me:hunter2@h/v1", "ftp://me:hunter2@h/v1", "me:hunter2@h/v1", "http:/me:hunter2@h"]
)
def test_no_message_about_a_url_shows_its_password(url: str) -> None:
    for make in (
        lambda: Endpoint(url),
        lambda: endpoints_of(Settings(base_url=(f"{url}/chat/completions",))),
    ):
        with pytest.raises(ConfigError) as caught:
            make()
        assert "hunter2" not in str(caught.value)


def test_with_only_a_key_the_judge_is_openais() -> None:
    (endpoint,) = judge_endpoints(settings_for(OPENAI_API_KEY="sk-1"))
    assert (endpoint.url, endpoint.model, endpoint.key) == (OPENAI_URL, OPENAI_MODEL, "sk-1")
    with pytest.raises(ConfigError, check=about("base_url", "export OPENAI_API_KEY=")):
        judge_endpoints(settings_for())


def test_a_model_is_found_on_an_event_loop_too(server: Server) -> None:
    server.say({"data": [{"id": "only"}]})

    async def main() -> str:
        (endpoint,) = judge_endpoints(settings_for(PLAUDIT_BASE_URL=server.url))
        return endpoint.model

    assert asyncio.run(main()) == "only"
