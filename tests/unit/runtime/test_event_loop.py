"""The event loop works without TLS modules. Each test runs in a new process, because the test process has loaded all
modules.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ophion.testing.node_process import environment

LOADED = "import sys; from ophion.runtime.event_loop import load_without_tls; load_without_tls()\n"
ECHO = """
import asyncio, uvloop

async def serve(reader, writer):
    writer.write(await reader.readline())
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\\n")
    print((await reader.read()).decode().strip())
    writer.close()
    server.close()

def run(main):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
"""
REFUSED = """
async def encrypted():
    import ssl
    context = ssl.create_default_context()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    for attempt in (
        lambda: asyncio.open_connection(host, port, ssl=context),
        lambda: asyncio.open_connection(host, port, ssl=True),
        lambda: asyncio.start_server(serve, "127.0.0.1", 0, ssl=context),
    ):
        try:
            await attempt()
        except Exception as error:
            print(type(error).__name__)
    server.close()
"""


def shown(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_clients_are_served_without_openssl() -> None:
    assert shown(LOADED + ECHO + "run(main())\nprint('ssl' in sys.modules, '_ssl' in sys.modules)") == [
        "hello",
        "False",
        "False",
    ]


def test_what_should_be_encrypted_is_refused_and_not_sent_in_clear() -> None:
    assert shown(LOADED + ECHO + REFUSED + "run(encrypted())") == ["RuntimeError", "RuntimeError", "TypeError"]


def test_where_it_is_loaded_already_nothing_changes() -> None:
    code = "import ssl\n" + LOADED + "import asyncio.sslproto\nprint(sys.modules['ssl'] is ssl is asyncio.sslproto.ssl)"
    assert shown(code) == ["True"]


@pytest.mark.parametrize("name", ["HAS_SNI", "OP_NO_TICKET"])
def test_a_name_that_a_later_loop_asks_for_is_the_real_one(name: str) -> None:
    code = "from ophion.runtime.event_loop import _names; import sys; names = sys.modules['ssl'] = _names()\n"
    code += f"found = names.{name}; print(sys.modules['ssl'] is names); del sys.modules['ssl']\n"
    assert shown(code + f"import ssl; print(found == ssl.{name})") == ["True", "True"]
