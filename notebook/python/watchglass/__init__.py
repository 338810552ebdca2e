"""Watchglass beside your code: marks on its charts, and what was measured.

``mark`` and ``span`` work in notebooks and scripts. Where no server runs they do nothing. ``%load_ext watchglass`` adds
the cells of a notebook, ``%watchglass`` and ``%%watch``.
"""

import contextlib
import time

from . import client

__version__ = "0.1.0"
__all__ = ["mark", "query", "span"]


def mark(text, kind="note", step=None):
    """Marks this instant on the charts.

    ``text`` is cut to 256 bytes. ``kind`` is ``note``, ``epoch``, ``step``, ``checkpoint`` or ``eval``; ``step`` is the
    number of the training step. Returns at once and never raises.
    """
    _put(text, kind, step, time.time(), None)


@contextlib.contextmanager
def span(text, kind="note", step=None):
    """Marks the time that a ``with`` block takes, also of one that raises: ``with watchglass.span("train"):``."""
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
            # A clock that was set back gives no span that ends before it begins.
            marker["end"] = max(begin, end)
        if step is not None:
            marker["step"] = int(step)
        client.sender().put(client.own(marker))
    except Exception:  # A text that cannot be made, a step that is no number: the training goes on.
        pass


def query(tag, last="5m", step=None):
    """What was stored of the series that ``tag`` selects (``gpu.*.memory``), of the time ``last`` (``30s``, ``5m``,
    ``1h``, ``1d``).

    Returns a dict of tag to ``{"unit": ..., "t": [...], "value": [...]}`` with Unix seconds; with ``step`` (``1m``)
    ``min``, ``max``, ``mean``, ``last`` and ``count`` of each step in place of ``value``. From a hub the tag has its
    source before it: ``source/tag``. ``pandas.DataFrame`` takes each of them.

    Raises ``watchglass.client.Unreachable`` without a server, ``watchglass.client.Refused`` with the server's sentence.
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


def load_ipython_extension(shell):
    """Called by ``%load_ext watchglass``."""
    from . import magic

    magic.load(shell)


def unload_ipython_extension(shell):
    """Called by ``%unload_ext watchglass``."""
    from . import magic

    magic.unload(shell)
