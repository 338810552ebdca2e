"""Watchglass in your code: marks on its charts, alerts, and stored samples.

``mark``, ``span``, ``log`` and ``alert`` work in notebooks and scripts. Without a server they queue and count what they could not
send; ``status`` shows the counts. ``%load_ext watchglass`` records the cells of a notebook, and adds ``%watchglass`` and ``%%watch``.
"""

import contextlib
import time

from . import client
from .values import values as _values

__version__ = "0.1.0"
__all__ = ["Figure", "alert", "figure", "log", "mark", "query", "span", "status", "steps"]


def mark(text, kind="note", step=None):
    """Marks the current time on the charts.

    ``text`` is truncated to 256 bytes. ``kind`` is ``note``, ``epoch``, ``step``, ``checkpoint`` or ``eval``; ``step``
    is the number of the training step. Returns at once and never raises.
    """
    _put(text, kind, step, time.time(), None)


@contextlib.contextmanager
def span(text, kind="note", step=None):
    """Marks the duration of a ``with`` block, even when it raises: ``with watchglass.span("train"):``."""
    begin = time.time()
    try:
        yield
    finally:
        _put(text, kind, step, begin, time.time())


def _put(text, kind, step, begin, end):
    try:
        if client.is_off():
            return
        marker = {"kind": str(kind), "text": client.clip(text, 256), "t": begin}
        if end is not None:
            # After a clock was set back, a span must not end before it begins.
            marker["end"] = max(begin, end)
        if step is not None:
            marker["step"] = int(step)
        if not client.told(marker):
            client.sender().put(client.own(marker))
    except Exception as error:  # An object without a text, a step that is not a number: the training goes on.
        _drop(client.sender, error)


def _drop(queue, error):
    """Counts a call that cannot be sent: ``status`` shows it."""
    try:
        queue().drop(1, client.clip(error, 256) or type(error).__name__)
    except Exception:  # The interpreter is ending.
        pass


def log(values, step=None):
    """Logs numbers of the job, such as ``watchglass.log({"loss": 0.41, "tokens_per_s": 12_400}, step=1200)``.

    They become the series ``job.loss`` and ``job.tokens_per_s`` of this process, its rank and its run, one sample in
    each interval of the server: the last value counts. A name is a letter or ``_``, then letters, digits and
    ``_ . / -``, at most 64 bytes. A process may have 64 names. ``step`` is the number of the training step; a value of
    that name means the same. Returns at once and never raises. A tensor is read with ``float``, which waits for its
    device.
    """
    try:
        if client.is_off():
            return
        kept = {}
        for name, value in values.items():
            kept[name] = value if type(value) is float or type(value) is int else _float(value)
        _values().put(kept, step)
    except Exception as error:  # No dict: the training goes on.
        _drop(_values, error)


def steps(batches, first=0):
    """Yields each of ``batches`` and logs the duration of its step: ``for batch in watchglass.steps(loader):``.

    The values are ``step_time_s`` and ``data_time_s``, the part of it that waited for the batch, both in seconds.
    ``first`` is the number of the first step. Work that a GPU still does after a step belongs to the next one.
    """
    begin = time.perf_counter()
    for step, batch in enumerate(batches, first):
        loaded = time.perf_counter()
        yield batch
        end = time.perf_counter()
        log({"step_time_s": end - begin, "data_time_s": loaded - begin}, step=step)
        begin = end


def _float(value):
    try:
        # PyTorch warns of a number that is taken from a tensor with a gradient.
        detach = getattr(value, "detach", None)
        return float(value if detach is None else detach())
    except Exception:  # It is counted when it is sent.
        return None


def alert(title, text=None, severity="warning", wait=None):
    """Raises an alert, for which the server sends notices: ``watchglass.alert("loss is NaN", text="step 1200")``.

    ``title`` is truncated to 150 bytes and ``text`` to 1,200. ``severity`` is ``info``, ``warning`` or ``critical``. An
    alert with the same title within ``wait`` (``"30m"``, or seconds; default: 10 minutes) is counted without a notice.
    The server's channels determine the recipients. Returns at once and never raises.
    """
    try:
        if client.is_off():
            return
        said = {"title": client.clip(title, 150), "severity": str(severity)}
        if text is not None:
            said["text"] = client.clip(text, 1200)
        if wait is not None:
            said["wait"] = wait if isinstance(wait, str) else "%ds" % max(0, int(wait))
        if not client.told_alert(said):
            said.update(t=time.time(), id=client.new_id())
            client.sender().put(client.Alert(client.placed(said)))
    except Exception as error:  # A title without a text: the training goes on.
        _drop(client.sender, error)


def status():
    """What became of the marks, alerts and values of this process, as a dict: ``sent`` (the server has taken them), ``queued``,
    ``dropped`` (the queue was full, or the server rejected them), ``failed`` (attempts without an answer), and
    ``error`` (the error of the last attempt that failed, or None). ``values`` has ``sent``, ``dropped`` and ``error`` of
    the numbers that ``log`` was given. Never waits for a server."""
    return dict(client.sender().status(), values=_values().status())


def query(tag, last="5m", step=None):
    """Stored samples of the series that ``tag`` selects (``gpu.*.memory``), for the time ``last`` (``30s``, ``5m``,
    ``1h``, ``1d``).

    Returns a dict from tag to ``{"unit": ..., "t": [...], "value": [...]}`` with Unix seconds. With ``step`` (``1m``)
    each has ``min``, ``max``, ``mean``, ``last`` and ``count`` of each step in place of ``value``. Series of several
    machines of a hub have keys of the form ``source/tag``. ``pandas.DataFrame`` accepts each of the values.

    Raises ``watchglass.client.Unreachable`` without a server, and ``watchglass.client.Refused`` with the server's
    error.
    """
    from urllib.parse import urlencode

    asked = {"tag": tag, "from": "-" + last.lstrip("-")}
    if step is not None:
        asked["step"] = step
    series = client.ask("api/v1/query?" + urlencode(asked), timeout=30.0).get("series", [])
    several = len({one.get("source") for one in series}) > 1
    told = {}
    for one in series:
        name = "%s/%s" % (one.get("source"), one["tag"]) if several else one["tag"]
        columns = {"unit": one.get("unit")}
        if "buckets" in one:
            for key in ("t", "min", "max", "mean", "last", "count"):
                columns[key] = [bucket.get(key) for bucket in one["buckets"]]
        else:
            points = one.get("points", [])
            columns["t"] = [point[0] for point in points]
            columns["value"] = [point[1] for point in points]
        told[name] = columns
    return told


class Figure:
    """A chart as a picture that is saved in the notebook: SVG, drawn by the server like the page's charts."""

    def __init__(self, svg):
        self.svg = svg

    def __str__(self):
        import html

        begin, end = self.svg.find("<title>"), self.svg.find("</title>")
        return html.unescape(self.svg[begin + len("<title>") : end]) if 0 <= begin < end else "a figure of Watchglass"

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg, "text/plain": str(self)}


def figure(tag, last=None, cell=None, theme="light", width=720, height=316):
    """A chart of the series that ``tag`` selects (``gpu.*.gpu``), which must all have the same unit.

    It shows the time ``last`` (``30s``, ``5m``, ``1h``), or a cell of this notebook. ``cell=-1`` is the cell that ended
    last, ``cell=3`` the newest run with the number 3. Without both it shows the last five minutes. ``theme`` is
    ``light`` or ``dark``. ``width`` and ``height`` are in pixels.

    Raises ``watchglass.client.Unreachable`` without a server, ``watchglass.client.Refused`` with the server's error,
    and ``LookupError`` when there is no such cell.
    """
    begin, end = _cell(cell) if cell is not None else ("-" + (last or "5m").lstrip("-"), None)
    return drawn(tag, begin, end, theme=theme, width=width, height=height)


def drawn(tag, begin, end=None, **look):
    """A :class:`Figure` from ``begin`` to ``end``, in Unix seconds or as spans before now; see :func:`figure`."""
    from urllib.parse import urlencode

    span = {"from": begin} if end is None else {"from": begin, "to": end}
    asked = {"tag": tag, **look, **{key: t if isinstance(t, str) else "%.3f" % t for key, t in span.items()}}
    return Figure(client.ask("api/v1/figure?" + urlencode(asked), timeout=30.0, read=lambda text: text.decode("utf-8")))


def _cell(cell):
    """Begin and end of a cell's run, Unix seconds."""
    kernel = client.kernel_id()
    asked = "api/v1/cells?from=-1d" + ("&kernel=" + kernel if kernel else "")
    ended = [run for run in client.ask(asked, timeout=30.0).get("cells", []) if "to" in run]
    ended.sort(key=lambda run: run["to"])
    if cell < 0:
        found = ended[cell:][:1] if len(ended) >= -cell else []
    else:
        found = [run for run in ended if run.get("n") == cell][-1:]
    if not found:
        raise LookupError("no cell %d has ended in this notebook; run %%load_ext watchglass first" % cell)
    return found[0]["from"], found[0]["to"]


def load_ipython_extension(shell):
    """Called by ``%load_ext watchglass``."""
    from . import magic

    magic.load(shell)


def unload_ipython_extension(shell):
    """Called by ``%unload_ext watchglass``."""
    from . import magic

    magic.unload(shell)
