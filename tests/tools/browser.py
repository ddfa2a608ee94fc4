"""A Chromium without a window, spoken to through two pipes (its DevTools protocol: JSON, each message with a NUL behind it)."""
import base64, json, os, select, shutil, struct, subprocess, tempfile, time, zlib


def find():
    """The browser's path; None where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page. `faults` collects what its console says and what it throws; `requests` the addresses it asks for."""

    def __init__(self, path, width=1400, height=800):
        self.profile = tempfile.mkdtemp(prefix="tutti-browser-")
        to_it, self.out = os.pipe()
        self.into, from_it = os.pipe()
        self.log = tempfile.TemporaryFile()

        def wire():  # it reads from 3 and writes to 4; neither pipe may lie there while it is moved
            read, write = os.dup(to_it), os.dup(from_it)
            while read in (3, 4):
                read = os.dup(read)
            while write in (3, 4):
                write = os.dup(write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
             "--force-device-scale-factor=1", "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             f"--window-size={width},{height}", "about:blank"],
            preexec_fn=wire, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            env=os.environ | {"HOME": self.profile})
        os.close(to_it)
        os.close(from_it)
        self.buffer, self.number, self.session, self.events, self.faults, self.requests = b"", 0, None, [], [], []
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def message(self, until):
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.into, 1 << 20)
            if not more:
                self.log.seek(0)
                raise EOFError(f"the browser has ended: {self.log.read()[-2000:].decode(errors='replace')}")
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        said = json.loads(text)
        if "method" in said:
            self.events.append(said["method"])
            self.note(said["method"], said.get("params", {}))
        return said

    def note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(params["exceptionDetails"])[:800])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.faults.append(json.dumps(params["args"])[:800])
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.faults.append(params["entry"]["text"])
        if method == "Page.javascriptDialogOpening":
            self.faults.append(f"a dialog: {params['message']}")
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def ask(self, method, seconds=90, **params):
        self.number += 1
        said = {"id": self.number, "method": method, "params": params}
        if self.session:
            said["sessionId"] = self.session
        os.write(self.out, json.dumps(said).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        self.events = []
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        until = time.monotonic() + 90
        while "Page.loadEventFired" not in self.events:
            self.message(until)
        self.wait_idle()

    def wait_idle(self):
        """Until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {json.dumps(answer['exceptionDetails'])[:600]}")
        return answer["result"].get("value")

    def key(self, key, text=None, modifiers=0):
        text = text if text is not None else key if len(key) == 1 else "\r" if key == "Enter" else ""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        code = codes.get(key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0)
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code, modifiers=modifiers)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code, modifiers=modifiers)
        self.wait_idle()

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.wait_idle()

    def scheme(self, name):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.wait_idle()

    def picture(self):
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def close(self):
        try:
            self.ask("Browser.close", seconds=10)
        except (OSError, EOFError, TimeoutError, RuntimeError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)


class Picture:
    """A PNG of 8 bits per colour as rows of (red, green, blue)."""

    def __init__(self, png):
        at, packed = 8, b""
        while at < len(png):
            length, kind = struct.unpack(">I4s", png[at:at + 8])
            body = png[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colour = struct.unpack(">IIBB", body[:10])
                assert depth == 8 and colour in (2, 6), "not a PNG of colours with 8 bits"
                self.bytes = 3 if colour == 2 else 4
            packed += body if kind == b"IDAT" else b""
            at += length + 12
        raw, line, self.rows = zlib.decompress(packed), self.width * self.bytes, []
        before = bytearray(line)
        for y in range(self.height):
            kind, row = raw[y * (line + 1)], bytearray(raw[y * (line + 1) + 1:(y + 1) * (line + 1)])
            self.unfilter(kind, row, before)
            self.rows.append(row)
            before = row

    def unfilter(self, kind, row, before):
        n = self.bytes
        if kind == 2:
            row[:] = bytes((a + b) & 255 for a, b in zip(row, before))
        elif kind in (1, 3, 4):
            for i in range(len(row)):
                left, up, corner = (row[i - n] if i >= n else 0), before[i], (before[i - n] if i >= n else 0)
                if kind == 1:
                    add = left
                elif kind == 3:
                    add = (left + up) // 2
                else:
                    p = left + up - corner
                    add = min((abs(p - left), 0, left), (abs(p - up), 1, up), (abs(p - corner), 2, corner))[2]
                row[i] = (row[i] + add) & 255

    def at(self, x, y):
        return tuple(self.rows[y][x * self.bytes:x * self.bytes + 3])
