"""The llama.cpp server process: `child.py MODEL NAME SLOTS CONTEXT THREADS`, as LocalServer starts it.

It reads its API key from the first line of stdin (arguments can be read by every user of the machine),
prints the port when it is ready to answer, and lives as long as its parent holds stdin open. So nothing
outlives a parent that was killed, and no process has to be looked for by name.
"""

from __future__ import annotations

import os
import select
import sys
from typing import Any

PARENT_CHECK_S = 1.0
IMPORT_FAILED = 3
"""Exit status where llama.cpp itself cannot be loaded, whatever the model."""


def main(arguments: list[str]) -> int:
    """Serve until the parent is gone."""
    parent = os.getppid()
    report = os.dup(1)
    os.dup2(2, 1)  # what llama.cpp prints goes to stderr; the port is the only word on stdout
    api_key = sys.stdin.readline().strip()
    _die_with_stdin()
    path, name, slots, context, threads = arguments
    try:
        server = _serve(path, name, api_key, slots=int(slots), context=int(context), threads=int(threads))
    except RuntimeError:
        return 1  # llama.cpp has said why, on stderr
    except ImportError as error:
        print(error, file=sys.stderr)
        return IMPORT_FAILED
    port = server.listening_address.rpartition(":")[2]
    os.write(report, f"{port}\n".encode())
    _wait_for_the_end(parent)
    os._exit(0)  # its threads may be in the middle of a reply that will not be read


def _die_with_stdin() -> None:
    """Let the kernel end this process when stdin closes: while a model loads, Python itself cannot run."""
    if sys.platform != "linux":
        return  # elsewhere the signal is ignored by default; the end is noticed once the model is loaded
    import fcntl

    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:  # it closed before the kernel watched it
        sys.exit(0)


def _serve(path: str, name: str, api_key: str, *, slots: int, context: int, threads: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.api_keys = [api_key]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = slots * context
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0  # the default keeps every prompt it has seen, up to 8 GB
    params.enable_reasoning = 0  # a verdict is the first token of the reply, not the first thought
    params.ui = False
    params.endpoint_slots = False  # shows the texts being judged
    params.verbosity = 2  # warnings and errors
    return xllamacpp.Server(params)


def _wait_for_the_end(parent: int) -> None:
    """Return when stdin ends, or when the parent is gone and only a process it forked still holds stdin."""
    if sys.platform == "win32":
        sys.stdin.read()
        return
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], PARENT_CHECK_S)
        if ready and not os.read(0, 1024):
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
