"""What a transport promises about the network between: no server there, proxies, TLS (with trustme)."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme
from wire_server import Exchange, Step, WireServer, answer, reply

from plaudit.errors import EndpointRefused, TransportFailed, Unreachable
from transport_contract.subject import ASK, KEY, Subject, everything_in, outcome_of


async def a_refused_connection_is_unreachable_and_names_the_url(subject: Subject) -> None:
    async with WireServer() as server:
        url = server.url(subject.kind)
    async with subject.to(url) as transport:
        found = await outcome_of(transport)
    assert isinstance(found, Unreachable)
    assert url in str(found)
    assert "refused" in str(found).lower() and "start" in str(found)


async def the_proxy_of_the_environment_is_used_unless_no_proxy_names_the_host(subject: Subject) -> None:
    path = "" if subject.kind == "ollama" else "/v1"
    async with WireServer(reply("by proxy")) as proxy, WireServer(reply("direct")) as server:
        environ = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}", "NO_PROXY": "localhost,127.0.0.1"}
        async with subject.to(f"http://judge.invalid:81{path}", environ=environ) as transport:
            assert (await transport.send(ASK)).text == "by proxy"
            assert proxy.requests[0].target.startswith(f"http://judge.invalid:81{path}/")
        async with subject.to(server.url(subject.kind), environ=environ) as transport:
            assert (await transport.send(ASK)).text == "direct"
        assert len(proxy.requests) == 1


async def a_proxy_that_is_not_there_is_named(subject: Subject) -> None:
    environ = {"HTTP_PROXY": "http://user:hunter2@127.0.0.1:9"}
    async with subject.to("http://judge.invalid/v1", environ=environ) as transport:
        found = await outcome_of(transport)
    assert isinstance(found, Unreachable)
    assert "proxy 127.0.0.1" in str(found)
    assert "hunter2" not in everything_in(found)


async def a_certificate_of_an_authority_named_by_ssl_cert_file_is_trusted(subject: Subject) -> None:
    with _authority() as tls:
        async with WireServer(reply("safe"), tls=tls) as server:
            async with subject.to(server.url(subject.kind, host="localhost")) as transport:
                for _ in range(3):
                    assert (await transport.send(ASK)).text == "safe"
            assert server.connections == 1


async def a_certificate_of_an_unknown_authority_is_not_trusted(subject: Subject) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(tls)
    async with (
        WireServer(tls=tls) as server,
        subject.to(server.url(subject.kind, host="localhost")) as transport,
    ):
        found = await outcome_of(transport)
        assert isinstance(found, Unreachable)
        assert "certificate" in str(found) and "SSL_CERT_FILE" in str(found)
        assert server.requests == []


async def a_certificate_for_another_host_is_not_trusted(subject: Subject) -> None:
    with _authority() as tls:
        async with WireServer(tls=tls) as server, subject.to(server.url(subject.kind)) as transport:
            assert isinstance(await outcome_of(transport), Unreachable)
            assert server.requests == []


async def a_server_that_wants_a_certificate_of_ours_is_not_said_to_be_silent(subject: Subject) -> None:
    with _authority() as tls:
        tls.verify_mode, tls.maximum_version = ssl.CERT_REQUIRED, ssl.TLSVersion.TLSv1_2
        async with (
            WireServer(tls=tls) as server,
            subject.to(server.url(subject.kind, host="localhost")) as transport,
        ):
            found = await outcome_of(transport)
    assert isinstance(found, Unreachable)
    assert "no answer within" not in str(found) and ": ;" not in str(found), found


async def a_server_that_hangs_up_on_plain_http_may_want_https(subject: Subject) -> None:
    with _authority() as tls:
        async with (
            WireServer(tls=tls) as server,
            subject.to(f"http://127.0.0.1:{server.port}") as transport,
        ):
            found = await outcome_of(transport)
    assert isinstance(found, TransportFailed)
    assert "check the URL's scheme and port" in str(found)


async def a_secure_endpoint_is_reached_through_a_tunnel_that_the_proxy_cannot_look_into(
    subject: Subject,
) -> None:
    with _authority() as tls:
        async with WireServer(reply("safe"), tls=tls) as server, WireServer(_tunnel(server.port)) as proxy:
            environ = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}
            url = server.url(subject.kind, host="localhost")
            async with subject.to(url, environ=environ) as transport:
                assert (await transport.send(ASK)).text == "safe"
            (opening,) = proxy.requests
            assert (opening.method, opening.target) == ("CONNECT", f"localhost:{server.port}")
            assert KEY not in str(opening)


async def a_proxy_that_wants_credentials_is_the_users_to_settle(subject: Subject) -> None:
    async with WireServer(answer(407, headers={"Proxy-Authenticate": "Basic"})) as proxy:
        at = f"127.0.0.1:{proxy.port}"
        for scheme in ("http", "https"):
            environ = {f"{scheme.upper()}_PROXY": f"http://{at}"}
            async with subject.to(f"{scheme}://judge.invalid/v1", environ=environ) as transport:
                found = await outcome_of(transport)
            assert isinstance(found, EndpointRefused), found
            assert "credentials" in str(found) and f"{scheme.upper()}_PROXY" in str(found)


async def credentials_in_the_proxys_url_are_used(subject: Subject) -> None:
    async with WireServer(reply("let in")) as proxy:
        environ = {"HTTP_PROXY": f"http://user:hunter2@127.0.0.1:{proxy.port}"}
        path = "" if subject.kind == "ollama" else "/v1"
        async with subject.to(f"http://judge.invalid{path}", environ=environ) as transport:
            assert (await transport.send(ASK)).text == "let in"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic dXNlcjpodW50ZXIy"


@contextmanager
def _authority() -> Iterator[ssl.SSLContext]:
    """A certificate for localhost, whose authority the environment names for as long as this lasts."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    before = {name: os.environ.pop(name, None) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    with authority.cert_pem.tempfile() as path:
        os.environ["SSL_CERT_FILE"] = path
        try:
            yield tls
        finally:
            del os.environ["SSL_CERT_FILE"]
            os.environ.update({name: value for name, value in before.items() if value is not None})


def _tunnel(port: int) -> Step:
    """What a proxy does on CONNECT: carry bytes to and fro, blindly."""

    async def step(exchange: Exchange) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await exchange.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        try:
            await asyncio.gather(_carry(exchange.reader, writer), _carry(reader, exchange.writer))
        finally:
            writer.close()

    return step


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def the_query_of_the_url_goes_with_every_request(subject: Subject) -> None:
    query = "api-version=2024-10-21&name=a%20b"
    async with (
        WireServer() as server,
        subject.to(f"{server.url(subject.kind)}?{query}") as transport,
    ):
        for _ in range(2):
            await transport.send(ASK)
        route = "/v1/chat/completions" if subject.kind == "openai" else "/api/chat"
        assert {request.target for request in server.requests} == {f"{route}?{query}"}


async def no_netrc_is_ever_read(subject: Subject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        netrc = Path(folder) / ".netrc"
        netrc.write_text("machine 127.0.0.1 login intruder password stolen\ndefault login a password b\n")
        netrc.chmod(0o600)
        kept = {name: os.environ.get(name) for name in ("HOME", "NETRC")}
        os.environ.update(HOME=folder, NETRC=str(netrc))
        try:
            async with WireServer() as server:
                async with subject.to(server.url(subject.kind), key=None) as transport:
                    await transport.send(ASK)
                assert "authorization" not in server.requests[0].headers
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
