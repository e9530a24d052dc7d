"""A page in headless Chromium, spoken to in the DevTools protocol over a pipe.

No driver and no package is needed: commands are JSON with a zero byte after each, written to the
browser's descriptor 3, answers are read from its descriptor 4.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_PATIENCE = 60  # seconds for one answer: a browser on a busy machine starts slowly


class Tab:
    """One page. `evaluate` runs JavaScript in it; `move`, `click` and `key` are a user's."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._read = b""
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.send("Page.enable")

    def send(self, method: str, **params: Any) -> Any:
        """A command's result. RuntimeError with the browser's words when it refuses."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._read:
            if not select.select([self._answers], [], [], _PATIENCE)[0]:
                raise TimeoutError(f"Chromium has not answered for {_PATIENCE} s")
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise EOFError("Chromium has ended")
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def open(self, url: str) -> None:
        """Goes to a page and waits until it is there."""
        self.send("Page.navigate", url=url)
        end = time.monotonic() + _PATIENCE
        while self.evaluate("document.readyState + location.href") != f"complete{url}":
            if time.monotonic() > end:
                raise TimeoutError(f"{url} did not load")
            time.sleep(0.02)

    def evaluate(self, script: str) -> Any:
        """The value of an expression."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def move(self, selector: str) -> tuple[float, float]:
        """Puts the mouse on the first element of a selector; returns where that is."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView()")
        x, y = self.evaluate(
            f"(r => [r.x + 20, r.y + r.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector: str) -> None:
        """Clicks on the first element of a selector."""
        x, y = self.move(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key)

    def resize(self, width: int, height: int) -> None:
        """Gives the page a window of this size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def prefer(self, scheme: str) -> None:
        """The reader's colours: "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path) -> None:
        """Writes what is seen to a PNG file."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


@contextlib.contextmanager
def tab() -> Iterator[Tab]:
    """A browser with one tab, which ends with the block."""
    assert PROGRAM is not None
    to_browser, from_us = os.pipe()[0:2]
    from_browser, to_us = os.pipe()[0:2]
    with tempfile.TemporaryDirectory(prefix="composite-chromium-") as profile:
        arguments = [
            "--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--disable-gpu",
            "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # which root cannot have
        ]  # fmt: skip
        # The shell puts the pipes where the browser looks for them.
        shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{to_us}'
        process = subprocess.Popen(
            ["bash", "-c", shell, PROGRAM, *arguments],
            pass_fds=(to_browser, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_us)
        try:
            yield Tab(from_us, from_browser)
        finally:
            os.close(from_us)  # the browser ends with its pipe
            os.close(from_browser)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
