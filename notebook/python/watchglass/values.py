"""Values of the job on their way to the server: ten times a second, from a background thread.

A server has one sample of a value in each of its intervals. So values wait only for the next message, and none is kept
for later: without a server they are dropped and counted.
"""

import atexit
import collections
import json
import os
import re
import threading
import time

from . import client

#: Seconds between two messages of this process: the server takes ten a second.
INTERVAL = 0.1
#: Seconds between two requests where no socket of runs is found, and where no server answers either.
REQUEST_INTERVAL, RETRY_INTERVAL = 1.0, 5.0
#: Timeout of a request in seconds. At the end of the process it delays the exit.
TIMEOUT = 1.0
#: Maximum number of names of a message. The server keeps as many for a process.
MAX_NAMES = 64
#: Maximum number of calls that wait for the thread. Beyond it the oldest are dropped and counted.
MAX_CALLS = 4096
#: Maximum size of a message in bytes.
MESSAGE_BYTES = 8192
#: Maximum step: a number of JSON is exact up to it.
MAX_STEP = 1 << 53
#: Seconds for which the last values of a process wait for their answer.
LAST_WAIT = 0.2
#: Path of requests with values.
VALUES = "api/v1/values"
#: A valid name.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}\Z")
#: Names that have another meaning.
RESERVED = ("not_a_number", "step")
#: Sockets of services that take the jobs of other users.
SERVICES = ("/run/watchglass/run.sock", "/run/watchglass-agent/run.sock")


def places():
    """Paths of sockets of runs, the likeliest first; empty if ``WATCHGLASS_URL`` names another server."""
    named = os.environ.get("WATCHGLASS_SOCKET", "")
    if named or os.environ.get("WATCHGLASS_URL", ""):
        return [named] if named else []
    # In the data folder it is called run.sock, and in the runtime folder it has the name of the other with an ending.
    own = [
        os.path.join(os.path.dirname(path), "run.sock") if path.endswith("control.sock") else path[:-5] + "-run.sock"
        for path in client.sockets()
    ]
    return own + list(SERVICES)


def number(value):
    """``value`` as JSON has it: NaN and infinities are texts. Raises for anything that is no number."""
    value = float(value)
    if value - value == 0.0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def whole(step):
    """``step`` as a number of a training step. Raises for anything else."""
    step = int(step)
    if not 0 <= step <= MAX_STEP:
        raise ValueError(step)
    return step


class Values:
    """Sends values from a daemon thread that starts with the first call. ``put`` never waits and never raises."""

    def __init__(self, ask=None, interval=INTERVAL):
        self._ask = ask or (lambda path, body: client.ask(path, body, timeout=TIMEOUT))
        self._interval = interval
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.flush)

    def _begin(self):
        #: Numbers of values that were sent, and that were dropped.
        self.sent = self.dropped = 0
        #: Error of the last message that failed or was refused, or None.
        self.error = None
        # A forked process has no thread. Its parent sends what waits.
        self._calls = collections.deque(maxlen=MAX_CALLS)
        self._wake = threading.Event()
        self._sending = threading.Lock()
        self._starting = threading.RLock()
        self._thread = None
        self._sock = None

    def status(self):
        """Counts since the start of this process, as a dict; see ``watchglass.status``."""
        return {"sent": self.sent, "dropped": self.dropped, "error": self.error}

    def put(self, values, step):
        """Queues the values of one call. The thread reads them, so they must not change."""
        if len(self._calls) == MAX_CALLS:
            self.dropped += 1
        self._calls.append((values, step))
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._start()

    def _start(self):
        # Two threads of the job may make their first call at once.
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watchglass-values", daemon=True)
                self._thread.start()

    def _run(self):
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                pause = self.send()
            except Exception as error:
                # Without this thread all further values would be lost.
                pause, self.error = RETRY_INTERVAL, str(error) or type(error).__name__
            time.sleep(pause)

    def flush(self):
        """Sends what waits, and waits a moment until the server has it: it finds the run of a process that lives."""
        try:
            if self._calls:
                self.send(wait=LAST_WAIT)
        except Exception:  # The interpreter is ending.
            pass

    def send(self, wait=None):
        """Sends the calls that wait as one message, or two if a value was not finite between. Returns the pause until
        the next one in seconds."""
        pause = self._interval
        with self._sending:
            for values, step in self._messages():
                message = {"values": values}
                if not client.hub_key():
                    message["pid"] = os.getpid()
                elif os.environ.get("WATCHGLASS_RUN_ID"):
                    message["run"] = os.environ["WATCHGLASS_RUN_ID"]
                if step is not None:
                    message["step"] = step
                body = json.dumps(message).encode()
                if len(body) > MESSAGE_BYTES:
                    self.drop(len(values), "the values of one message have more than %d bytes" % MESSAGE_BYTES)
                elif not self._datagram(body, len(values), wait):
                    pause = max(pause, self._request(body, len(values)))
        return pause

    def drop(self, count, error):
        """Counts values that cannot be sent."""
        self.dropped += count
        self.error = error

    def _messages(self):
        """The values to send. The last of a name counts, but one that is not finite is never replaced by a finite one."""
        messages, values, last = [], {}, None
        while self._calls:
            given, step = self._calls.popleft()
            try:
                last = last if step is None else whole(step)
            except Exception:  # A tensor raises errors of its own.
                self.error = "the step is no whole number from 0"
            for name, value in given.items():
                name = str(name)
                try:
                    value = number(value)
                except (TypeError, ValueError, OverflowError):
                    self.drop(1, "the value of %s is no number" % client.clip(name, 64))
                    continue
                if name == "step" and isinstance(value, float) and 0 <= value <= MAX_STEP:
                    last = int(value) if step is None else last
                elif not NAME.match(name) or name in RESERVED:
                    self.drop(1, "%r is no name of a value" % client.clip(name, 64))
                elif name not in values and len(values) >= MAX_NAMES:
                    self.drop(1, "a process has at most %d names" % MAX_NAMES)
                else:
                    if not messages and isinstance(values.get(name), str) and isinstance(value, float):
                        messages.append((values, last))
                        values = {}
                    values[name] = value
        if values or last is not None:
            messages.append((values, last))
        return messages

    def _datagram(self, body, count, wait):
        """Sends a message to the socket of runs. False if nobody listens."""
        import socket

        if not hasattr(socket, "AF_UNIX"):
            return False
        for path in ([None] if self._sock else []) + places():
            sock = self._sock
            try:
                sock = sock or socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                sock.setblocking(False)
                if wait and not sock.getsockname():
                    sock.bind("")  # Linux then gives it a name, to which the server answers.
                if path is not None:
                    sock.connect(path)
                    self._sock = sock
                sock.send(body)
            except BlockingIOError:
                # The server does not read now. The values of the next message are newer.
                self.drop(count, "the server does not read its socket")
                return True
            except OSError:
                # Nobody listens there, or no more; or this process has too many open files.
                if sock is not None:
                    sock.close()
                self._sock = None
                continue
            self.sent += count
            if wait:
                self._await_answer(sock, wait)
            return True
        return False

    def _await_answer(self, sock, wait):
        try:
            sock.settimeout(wait)
            sock.recv(1024)
        except OSError:  # No answer in time: the message may have arrived.
            pass

    def _request(self, body, count):
        """Sends a message as a request. Returns the pause until the next one in seconds."""
        try:
            dropped = int(self._ask(client.about_machine(VALUES), body).get("dropped", 0))
        except Exception as error:
            self.drop(count, str(error))
            return RETRY_INTERVAL
        self.sent += count - dropped
        self.dropped += dropped
        return REQUEST_INTERVAL


_values = None
# A signal handler may call in the middle of a call.
_making = threading.RLock()


def _after_fork():
    global _making
    # The thread that held the lock may not exist in a forked process.
    _making = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def values():
    """The one queue of this process."""
    global _values
    if _values is None:
        with _making:
            if _values is None:
                _values = Values()
    return _values
