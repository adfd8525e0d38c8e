"""A headless Chromium that is told what to do through a pipe, by the DevTools protocol."""

import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
           "--disable-component-update", "--disable-extensions", "--remote-debugging-pipe")  # fmt: skip
PATIENCE = 60.0  # seconds until an answer of the browser


class Tab:
    """One page. `messages` are those on its console."""

    def __init__(self, giving, taking):
        self._giving, self._taking, self._rest, self._number = giving, taking, b"", 0
        self.session, self.messages = None, []

    def ask(self, method, **parameters):
        """Ask for something, and return the answer."""
        self._number += 1
        told = {"id": self._number, "method": method, "params": parameters}
        if self.session is not None:
            told["sessionId"] = self.session
        os.write(self._giving, json.dumps(told).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self._next(end - time.monotonic())
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            if found.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.messages.append(found["params"])
        raise TimeoutError(method)

    def _next(self, seconds):
        while b"\0" not in self._rest:
            if not select.select([self._taking], [], [], seconds)[0]:
                raise TimeoutError("the browser says nothing")
            self._rest += os.read(self._taking, 2**20)
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def value(self, script):
        """Return the value of a script, which may be a promise."""
        told = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")


@contextmanager
def tab(address, width, profile):
    """Yield a page of this width, in pixels."""
    for_browser, giving = os.pipe()
    taking, from_browser = os.pipe()

    def arrange():  # the browser reads from 3 and writes to 4
        one, other = os.dup(for_browser), os.dup(from_browser)
        os.dup2(one, 3)
        os.dup2(other, 4)

    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, close_fds=False, preexec_fn=arrange, **quiet)
    try:
        os.close(for_browser)
        os.close(from_browser)
        page = Tab(giving, taking)
        target = page.ask("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page.ask("Runtime.enable")
        page.ask("Log.enable")
        page.ask("Emulation.setDeviceMetricsOverride", width=width, height=2000, deviceScaleFactor=1, mobile=width < 600)
        page.ask("Page.navigate", url=address)
        yield page
    finally:
        process.kill()
        process.wait()
        os.close(giving)
        os.close(taking)
