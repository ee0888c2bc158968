"""Pictures of every page, light and dark, at two sizes: `python scripts/screenshots.py OUT`.

Starts the dashboard on a free port, drives an installed Chromium and prints what it saw: errors on
the page, horizontal overflow, seconds until a page was still.
"""

import argparse
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright


ROOT = Path(__file__).resolve().parents[1]
SIZES = ((1280, 800), (1920, 1080))
DRAWN = '[data-testid="stMainBlockContainer"] [data-testid="stElementContainer"]'
PAGES = (
    "overview",
    "prototypes",
    "prompt",
    "attribution",
    "suppression",
    "control",
    "curvature",
    "heads",
    "emergence",
    "catalogue",
    "models",
    "pair",
    "routing",
    "forecast",
    "add",
    "runs",
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(port: int) -> subprocess.Popen[bytes]:
    """The dashboard on `port`."""
    command = [
        sys.executable, "-m", "streamlit", "run", str(ROOT / "dashboard" / "app.py"),
        "--server.port", str(port), "--server.headless", "true", "--server.fileWatcherType", "none",
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=sys.stderr)


def wait_for(port: int, seconds: float = 60) -> None:
    """Until the server answers."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"The dashboard did not answer on port {port} within {seconds:.0f} s.")


def settle(page: Page, timeout: float = 240) -> float:
    """Wait until no script runs and nothing is a skeleton; returns the seconds it took."""
    start_time = time.monotonic()
    still = 0
    while time.monotonic() - start_time < timeout and still < 4:
        busy = page.locator(
            '[data-testid="stStatusWidget"], [data-testid="stSkeleton"], .stSpinner, '
            '[data-testid="stAppSkeleton"]'
        ).count()
        ready = page.locator(DRAWN).count() > 1
        still = still + 1 if ready and not busy else 0
        page.wait_for_timeout(200)
    page.wait_for_timeout(500)
    return time.monotonic() - start_time - 1.3


def look(page: Page, address: str, target: Path) -> None:
    """Open an address, save its first screen and its whole length, say what is wrong."""
    page.goto(address, timeout=240_000)
    took = settle(page)
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    failures = page.locator('[data-testid="stException"]').all_inner_texts()
    page.screenshot(path=str(target))
    height = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight || 800")
    size = page.viewport_size or {"width": 1280, "height": 800}
    page.set_viewport_size({"width": size["width"], "height": min(int(height) + 20, 6000)})
    page.wait_for_timeout(900)
    page.screenshot(path=str(target.with_stem(target.stem + "-whole")))
    page.set_viewport_size(size)
    notes = [f"{took:5.1f} s"]
    notes += [f"overflows by {width} px"] if width > 0 else []
    notes += [text.splitlines()[0] for text in failures]
    print(target.name, *notes, sep="  ")


def shoot(browser: Browser, base: str, out: Path, arguments: argparse.Namespace) -> None:
    """Every page in every theme and size asked for."""
    for theme in arguments.themes:
        for width, height in SIZES[: arguments.sizes]:
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme
            )
            page = context.new_page()
            page.on("pageerror", lambda error: print("  script error:", str(error)[:200]))
            for name in arguments.pages:
                path = "" if name == "overview" else name
                query = f"?run={arguments.run}" if arguments.run else "?"
                query += f"&{arguments.query}" if arguments.query else ""
                look(page, f"{base}/{path}{query}", out / f"{name}-{theme}-{width}.png")
            context.close()


def main() -> None:
    """Read the arguments, start the server, take the pictures, stop the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", default="")
    parser.add_argument("--query", default="", help="more URL parameters, a=1&b=2")
    parser.add_argument("--pages", nargs="+", default=list(PAGES))
    parser.add_argument("--themes", nargs="+", default=["light", "dark"])
    parser.add_argument("--sizes", type=int, default=2, help="1: only 1280 x 800")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    port = free_port()
    server = start(port)
    try:
        wait_for(port)
        with sync_playwright() as play:
            chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
            browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
            shoot(browser, f"http://localhost:{port}", arguments.out, arguments)
            browser.close()
    finally:
        server.terminate()
        server.wait(10)


if __name__ == "__main__":
    main()
