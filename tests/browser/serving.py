"""What browser tests share: a dashboard over a house of its own, a Chromium, and waiting."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120_000
"""Milliseconds a step may take on a busy machine."""
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def chromium() -> str:
    """Path of the browser, or a skip."""
    found = os.environ.get("HEADWATER_CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.skip("no Chromium on this machine")
    return found


@contextmanager
def launched() -> Iterator[object]:
    """One Chromium; each reader gets a context of their own."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = chromium()
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield running
        running.close()


@contextmanager
def served(house: Path) -> Iterator[str]:
    """Address of a dashboard over the folders `cache` and `assets` of a house."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"),
        "--server.port", str(port), "--server.headless", "true", "--server.fileWatcherType", "none",
    ]  # fmt: skip
    folders = {f"HEADWATER_{n.upper()}": str(house / n) for n in ("cache", "assets")}
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | folders,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait(url: str) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the dashboard did not start")


def settle(page) -> None:
    """Wait until the script has come to rest."""
    page.wait_for_timeout(400)
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
