"""Client of a Watchglass server on this machine: finds it, sends requests, and sends markers and alerts from a
background thread.

Only ``ask`` and ``Sender.flush`` wait for a server. Only the standard library is used, and its slow modules are
imported where they are needed.
"""

import atexit
import collections
import json
import os
import sys
import threading
import time

#: Maximum number of queued markers. Beyond it the oldest are dropped and counted.
LIMIT = 4096
#: Maximum number of markers and bytes of one request. The server accepts 256 and 64 KiB.
BATCH = 128
BATCH_BYTES = 60_000
#: Maximum size in bytes of a datagram that the server reads.
DATAGRAM_BYTES = 2048
#: Paths for markers, in batches, and for alerts, one by one.
MARKERS, ALERTS = "api/v1/markers", "api/v1/alerts"
#: Timeout of a request in seconds.
TIMEOUT = 5.0
#: First and maximum pause in seconds before a retry, after a server did not answer.
RETRY = (1.0, 60.0)
#: HTTP statuses after which the same request may succeed later.
BUSY = (408, 429, 502, 503, 504)
#: HTTP statuses of a request of which only a part may be invalid.
INVALID = (400, 413)
#: Maximum size of an answer in bytes.
MAX_ANSWER = 64 << 20


class Unreachable(Exception):
    """No server answers. The text gives the remedy."""


class Refused(Exception):
    """The server answered with an error. The text is its sentence, and ``status`` the HTTP status, or None when it is
    not a Watchglass server."""

    status = None


def data_folder():
    """The folder in which a server of this user stores its history, or None without a home folder."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "watchglass")


def sockets():
    """Paths of the sockets on which the server of this user listens, the likelier first. Access to its folder is
    required."""
    folder = data_folder()
    if folder is None or not os.path.isdir(folder):
        return []
    folder = os.path.realpath(folder)
    places = [os.path.join(folder, "control.sock")]
    # Schedulers and services start notebooks without the variable, and the server may have been started in a login.
    login = "/run/user/%d" % os.geteuid() if hasattr(os, "geteuid") else ""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "") or (login if os.path.isdir(login) else "")
    if os.path.isabs(runtime):
        import hashlib

        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16] + ".sock"
        places.insert(0, os.path.join(runtime, "watchglass", name))
    return places


class Alert(dict):
    """An alert in the format of the API. Each is sent in a request of its own."""


def placed(said):
    """Adds the machine and the run that the environment names to an alert, for a hub with several machines."""
    for key, name in (("source", "WATCHGLASS_SOURCE"), ("run", "WATCHGLASS_RUN_ID")):
        if hub_key() and os.environ.get(name):
            said[key] = os.environ[name]
    return said


def told_alert(said):
    """Sends an alert as one datagram, like ``told`` sends a marker."""
    message = dict(said)
    message["alert"] = message.pop("title")
    # An escaped character may take six bytes.
    while message.get("text") and len(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")) > DATAGRAM_BYTES:
        message["text"] = message["text"][: len(message["text"]) * 9 // 10]
    return told(message)


def told(marker):
    """Sends a marker as one datagram to ``WATCHGLASS_SOCKET``, which ``watchglass run`` sets: the server knows the run
    and rank of the sender. Never waits.

    Returns False when that is impossible: without that socket, in a notebook, without a listener, or when the socket
    is full.
    """
    path = os.environ.get("WATCHGLASS_SOCKET", "")
    if not path or kernel_id():
        return False
    import socket

    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(json.dumps(marker, ensure_ascii=False).encode("utf-8", "replace"), path)
        sender().count_sent()
        return True
    except (AttributeError, OSError):
        return False


def _connections(timeout):
    """Connections to try, in order: the address ``WATCHGLASS_URL``, else the sockets of this user's data folder."""
    import http.client
    import socket

    class OverSocket(http.client.HTTPConnection):
        """HTTP over a Unix socket."""

        def __init__(self, path):
            super().__init__("localhost", timeout=timeout)
            self.path = path

        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.path)

    url = os.environ.get("WATCHGLASS_URL", "")
    if hub_key() and not is_private(url):
        raise Unreachable("WATCHGLASS_KEY is sent by https only; set WATCHGLASS_URL to the https address of the hub")
    if url.startswith("unix:"):
        yield OverSocket(url[len("unix:") :]), "/"
    elif url:
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        made = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}.get(parts.scheme)
        if made is None or not parts.hostname:
            raise Unreachable("WATCHGLASS_URL is not an address; write http://localhost:7171/ or unix:PATH")
        yield made(parts.hostname, parts.port, timeout=timeout), parts.path.rstrip("/") + "/"
    elif hasattr(socket, "AF_UNIX"):
        for path in sockets():
            yield OverSocket(path), "/"


def hub_key():
    """The key in ``WATCHGLASS_KEY``, for a hub; empty without one."""
    return os.environ.get("WATCHGLASS_KEY", "").strip()


def is_private(url):
    """Whether nobody else reads what is sent to an address: by TLS, or without leaving this machine."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return parts.scheme in ("https", "unix") or parts.hostname in ("localhost", "127.0.0.1", "::1")


def about_machine(path):
    """``path`` with the machine that ``WATCHGLASS_SOURCE`` names, for a hub with several machines."""
    from urllib.parse import quote

    source = os.environ.get("WATCHGLASS_SOURCE", "")
    return path + "?source=" + quote(source, safe="") if source else path


def ask(path, body=None, timeout=TIMEOUT, read=json.loads):
    """Requests ``path`` (without its first slash) from the server; with ``body`` (bytes of JSON), by POST. Returns the
    result of ``read`` for its answer.

    Raises ``Unreachable`` when no server answers within ``timeout`` seconds, and ``Refused`` when it answers with an
    error.
    """
    import http.client

    headers = {"Accept": "application/json"}
    if hub_key():
        headers["Authorization"] = "Bearer " + hub_key()
    if body is not None:
        headers["Content-Type"] = "application/json"
    failure = None
    try:
        for connection, base in _connections(timeout):
            try:
                connection.connect()
            except OSError as error:
                connection.close()
                failure = error
                continue
            try:
                connection.request("GET" if body is None else "POST", base + path, body, headers)
                answer = connection.getresponse()
                text = answer.read(MAX_ANSWER + 1)
            finally:
                connection.close()
            if len(text) > MAX_ANSWER:
                raise Refused("the response exceeds 64 MiB; request less time or fewer series")
            if answer.status not in (200, 201):
                sentence = _sentence(text)
                # The same request may succeed in a moment, for example after the start of the server.
                refusal = (Unreachable if answer.status in BUSY else Refused)(
                    str(sentence or "the server returned %d without a reason; check WATCHGLASS_URL" % answer.status)
                )
                refusal.status = answer.status
                raise refusal
            return read(text) if text else {}
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable("the server does not respond: %s" % (error or type(error).__name__)) from None
    except ValueError:
        # An invalid address or answer.
        raise Refused("the server is not a Watchglass of this version; check WATCHGLASS_URL") from None
    if failure is not None and os.environ.get("WATCHGLASS_URL", ""):
        # Such as a certificate that this Python does not trust.
        raise Unreachable("the server of WATCHGLASS_URL does not respond: %s" % failure)
    raise Unreachable("no Watchglass responds; start one with `watchglass`, or set WATCHGLASS_URL")


def _sentence(text):
    """The sentence of an error's body; None for one that a proxy has written, such as a page of nginx."""
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said.get("error") if isinstance(said, dict) else None


def clip(text, most):
    """``text`` in at most ``most`` bytes of UTF-8, without a truncated character."""
    return str(text).encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


class Sender:
    """Sends markers from a daemon thread that starts with the first one. ``put`` never waits and never raises.

    Unsent markers are queued. The oldest beyond ``limit`` is dropped and counted in ``dropped``, and so are those that
    the server rejects. A failed request is resent unchanged, because the server stores a marker once. An invalid marker
    does not affect the others of its request.
    """

    def __init__(self, limit=LIMIT, ask=ask, retry=RETRY):
        self._ask, self._retry = ask, retry
        self._limit = limit
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)
        atexit.register(self.flush, 1.0)

    def _begin(self):
        #: Number of markers and alerts that the server has taken.
        self.sent = 0
        self.dropped = 0
        #: Number of attempts without an answer.
        self.failed = 0
        #: Error of the last attempt that failed or was rejected, or None.
        self.error = None
        # A forked process has no thread, and drops the parent's markers, because the parent sends them.
        self._waiting = collections.deque()
        self._changed = threading.Condition()
        self._thread = None
        self._busy = False
        # Number of markers that were removed from the queue and not answered yet.
        self._in_flight = 0
        self._hopeless = False
        self._asked_to_hurry = False

    def count_sent(self):
        """Counts a marker that was sent as a datagram."""
        with self._changed:
            self.sent += 1

    def drop(self, count, error):
        """Counts markers that cannot be sent."""
        with self._changed:
            self.dropped += count
            self.error = error

    def status(self):
        """Counts since the start of this process, as a dict; see ``watchglass.status``."""
        with self._changed:
            return {
                "sent": self.sent,
                "queued": len(self._waiting) + self._in_flight,
                "dropped": self.dropped,
                "failed": self.failed,
                "error": self.error,
            }

    def put(self, marker):
        """Queues a marker."""
        try:
            with self._changed:
                if len(self._waiting) >= self._limit:
                    self._waiting.popleft()
                    self.dropped += 1
                self._waiting.append(marker)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="watchglass", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        except Exception:  # No thread can be started, or the interpreter is ending.
            self.dropped += 1

    def flush(self, timeout):
        """Waits at most ``timeout`` seconds until all markers are sent, or one attempt has failed. True when all are
        sent."""
        until = time.monotonic() + timeout
        with self._changed:
            self._asked_to_hurry = True
            self._hopeless = False
            self._changed.notify_all()
            while (self._waiting or self._busy) and not self._hopeless:
                left = until - time.monotonic()
                if left <= 0 or self._thread is None or not self._thread.is_alive():
                    return False
                self._changed.wait(left)
            return not self._waiting and not self._busy

    def _take(self):
        """Removes the markers of one request, or one alert, from the queue. Returns the path, and the bytes of each."""
        pieces, size = [], 0
        while self._waiting and len(pieces) < BATCH:
            try:
                piece = json.dumps(self._waiting[0], ensure_ascii=False).encode("utf-8", "replace")
            except (TypeError, ValueError):
                self._waiting.popleft()
                self.dropped += 1
                continue
            alerts = isinstance(self._waiting[0], Alert)
            if pieces and (alerts or size + len(piece) > BATCH_BYTES):
                break
            self._waiting.popleft()
            if alerts:
                return ALERTS, [piece]
            pieces.append(piece)
            size += len(piece) + 1
        return MARKERS, pieces

    def _send(self, path, pieces):
        """Sends one request. Returns the number of markers that the server has dropped, and the requests in its place.

        Raises ``Unreachable`` when the same request may succeed later.
        """
        if not pieces:
            return 0, []
        try:
            body = pieces[0] if path == ALERTS else b'{"markers":[' + b",".join(pieces) + b"]}"
            where = path if path == ALERTS else about_machine(path)
            return int(self._ask(where, body).get("dropped", 0)), []
        except Unreachable:
            raise
        except Exception as error:
            self.error = str(error)
            if len(pieces) > 1 and getattr(error, "status", None) in INVALID:
                half = len(pieces) // 2
                return 0, [(path, pieces[:half]), (path, pieces[half:])]
            # Rejected, or an unexpected answer: a retry would not help.
            return len(pieces), []

    def _run(self):
        requests, pause = [], self._retry[0]
        while True:
            with self._changed:
                while not requests and not self._waiting:
                    self._busy = False
                    self._changed.notify_all()
                    self._changed.wait()
                self._busy = True
                if not requests:
                    requests = [self._take()]
                self._in_flight = sum(len(pieces) for _, pieces in requests)
            try:
                dropped, instead = self._send(*requests[0])
            except Unreachable as error:
                dropped, instead = 0, None
                self.error = str(error)
            with self._changed:
                if instead is not None:
                    self.dropped += dropped
                    if not instead:
                        self.sent += len(requests[0][1]) - dropped
                        self._in_flight -= len(requests[0][1])
                    requests[:1], pause = instead, self._retry[0]
                    continue
                self.failed += 1
                self._hopeless = True
                self._asked_to_hurry = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._asked_to_hurry, pause)
                self._asked_to_hurry = False
                pause = min(pause * 2, self._retry[1])


_sender = None
# A signal handler may call in the middle of a call.
_making = threading.RLock()


def _after_fork():
    global _making
    # The thread that held the lock may not exist in a forked process.
    _making = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def sender():
    """The one sender of this process."""
    global _sender
    if _sender is None:
        with _making:
            if _sender is None:
                _sender = Sender()
    return _sender


def is_off():
    """Whether ``WATCHGLASS_NOTEBOOK=off`` disables markers, alerts and hooks."""
    return os.environ.get("WATCHGLASS_NOTEBOOK", "").lower() in ("off", "0", "false")


def own(marker):
    """Adds the identity of a user's marker: this process, and a unique id. A hub does not know processes: there
    ``WATCHGLASS_RUN_ID`` names the run."""
    marker.update(id=new_id())
    if not hub_key():
        marker.update(pid=os.getpid())
    elif os.environ.get("WATCHGLASS_RUN_ID"):
        marker.update(run=os.environ["WATCHGLASS_RUN_ID"])
    return marker


def new_id():
    """A unique id of a marker or alert."""
    return os.urandom(12).hex()


def kernel_id():
    """The id of the Jupyter kernel in this process, from its connection file; None outside of a kernel."""
    import re

    # Jupyter's servers name the file by a UUID. VS Code, papermill and consoles use other names.
    found = re.fullmatch(r"(?:kernel-)?([0-9A-Za-z_-]{1,64})\.json", os.path.basename(connection_file() or ""))
    return found.group(1) if found else None


def connection_file():
    """The path of the kernel's connection file; None outside of a kernel."""
    app = sys.modules.get("ipykernel.kernelapp")
    try:
        return app.IPKernelApp.instance().abs_connection_file if app and app.IPKernelApp.initialized() else None
    except Exception:  # A future ipykernel may differ.
        return None
