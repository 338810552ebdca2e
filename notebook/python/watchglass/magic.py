"""``%load_ext watchglass``: start and end of each cell, ``%watchglass`` and ``%%watch``.

No source code leaves the kernel, except a cell's first line after ``%watchglass labels on``.
"""

import json
import os
import sys
import time

from . import client, drawn, mark

#: Maximum wait of ``%%watch`` for the measurements, in seconds.
PATIENCE = 3.0
#: Minimum duration of a cell for which a chart is useful, in seconds.
MIN_CHART_SECONDS = 3.0

USAGE = """%watchglass [--height PIXELS] [--panels gpu,memory]
                               shows the page below this cell, with these charts first
%watchglass mark TEXT          marks this instant on the charts
%watchglass labels on|off      also sends the first line of each cell
%watchglass enable             loads this in every kernel of your IPython profile; disable undoes it
%watchglass off                stops everything; %reload_ext watchglass starts again
%%watch [--quiet]              runs the cell and shows below it what it used, with a chart; quiet: no chart"""

#: Code that a kernel runs at its start. It does no harm after the package was uninstalled.
STARTUP = """# Written by `%watchglass enable`; `%watchglass disable` removes this file.
try:
    get_ipython().extension_manager.load_extension("watchglass")
except ImportError:
    pass
"""


class Cells:
    """The hooks of one shell: a marker at the start of a cell, and one at its end."""

    def __init__(self, shell, sender):
        self.shell, self.sender = shell, sender
        self.labels = False
        self._seq = 0
        # The running cells: the first is the one that the user sees, and the others were started by it.
        self._running = []
        self._began = 0.0

    def before(self, info):
        """Called at the start of a cell."""
        try:
            self._running.append(info)
            if len(self._running) > 1:
                return
            self._began = time.time()
            self._put("start", info, self._began)
        except Exception:  # An error here must not stop the user's cell.
            pass

    def after(self, result):
        """Called at the end of a cell. The cell that loaded this has no start, and is not reported."""
        try:
            info = getattr(result, "info", None)
            at = next((at for at, one in enumerate(self._running) if one is info), None)
            if result is None and self._running:
                at, info = 0, self._running[0]
            if at is None:
                return
            del self._running[at:]
            if at > 0:
                return
            error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
            self._put("end", info, time.time(), result, error)
            words = watched(getattr(info, "raw_cell", ""))
            if words is not None:
                self._tell(result, "--quiet" not in words)
        except Exception:
            pass

    def _put(self, phase, info, at, result=None, error=None):
        self._seq += 1
        marker = {"kind": "cell", "phase": phase, "pid": os.getpid(), "seq": self._seq, "t": at}
        cell = getattr(info, "cell_id", None)
        if cell:
            marker["cell"] = client.clip(cell, 64)
        if phase == "end":
            marker["ok"] = result is not None and error is None
            count = getattr(result, "execution_count", None)
            if count is not None:
                marker["n"] = count
            if error is not None:
                marker["error"] = client.clip(type(error).__name__, 64)
        if self.labels:
            lines = (line.strip() for line in (getattr(info, "raw_cell", "") or "").splitlines())
            label = next((line for line in lines if line and not line.startswith("%%watch")), "")
            marker["label"] = client.clip(label, 256)
        self.sender.put(marker)

    def _tell(self, result, with_chart):
        """Prints the resource usage of a watched cell below it, and shows a chart."""
        took = time.time() - self._began
        row = self._row() if self.sender.flush(PATIENCE) else None
        if row is None:
            count = getattr(result, "execution_count", None)
            print("%s%.3g s · no Watchglass responds" % ("" if count is None else "[%d] " % count, took))
            return
        print(" · ".join(row[key] for key in ("line", "finding") if row.get(key)))
        if with_chart:
            chart = self._chart(row)
            if chart is not None:
                from IPython.display import display

                display(chart)

    def _row(self):
        """The server's entry for the cell that ended last; None when there is none, or no server answers."""
        kernel = client.kernel_id()
        asked = "api/v1/cells?from=%.3f" % (self._began - 1.0) + ("&kernel=" + kernel if kernel else "")
        until = time.monotonic() + PATIENCE
        try:
            while time.monotonic() < until:
                for row in client.ask(asked, timeout=PATIENCE).get("cells", []):
                    if abs(row.get("from", 0.0) - self._began) < 0.002 and "to" in row:
                        return row
                # The last values are stored with the next tick.
                time.sleep(0.2)
        except (client.Unreachable, client.Refused):
            pass
        return None

    def _chart(self, row):
        """A chart of the GPUs that a cell used, else of its kernel's memory; None for a cell with too few samples."""
        if row["to"] - row["from"] < MIN_CHART_SECONDS:
            return None
        on = [gpu["gpu"] for gpu in row.get("gpus", []) if "mean" in gpu]
        tag = "gpu.%s.gpu" % (on[0] if len(on) == 1 else "*") if on else "kernel.%s.memory" % short(row["kernel"])
        try:
            return drawn(tag, row["from"], row["to"], width=640, height=200)
        except (client.Unreachable, client.Refused):
            return None


def short(kernel):
    """The part of a kernel's id that the tags of its series contain. Only the first letters of a UUID are random: those of
    VS Code's ids name its window."""
    is_uuid = len(kernel) == 36 and kernel[8] == "-"
    return kernel[:8] if is_uuid else kernel[:24]


def watched(cell):
    """The arguments of ``%%watch`` in a cell that begins with it; None for another cell."""
    words = next((line.split() for line in (cell or "").splitlines() if line.strip()), [])
    return words[1:] if words[:1] == ["%%watch"] else None


def unwrap(lines):
    """An input transformer that turns a cell with ``%%watch`` into a plain cell. It runs as without that line,
    including errors, results and ``await``, and its lines keep their numbers."""
    at = next((at for at, line in enumerate(lines) if line.strip()), None)
    if at is not None and lines[at].split()[:1] == ["%%watch"]:
        return lines[:at] + ["\n"] + lines[at + 1 :]
    return lines


_cells = {}


def load(shell):
    """Adds hooks and magics to ``shell``. A second call does nothing."""
    if id(shell) in _cells or client.is_off():
        return
    cells = Cells(shell, client.sender())
    shell.events.register("pre_run_cell", cells.before)
    shell.events.register("post_run_cell", cells.after)
    shell.input_transformers_cleanup.insert(0, unwrap)
    shell.register_magic_function(lambda line: watchglass(shell, line), "line", "watchglass")
    _cells[id(shell)] = cells


def unload(shell):
    """Removes the hooks."""
    cells = _cells.pop(id(shell), None)
    if cells is None:
        return
    shell.events.unregister("pre_run_cell", cells.before)
    shell.events.unregister("post_run_cell", cells.after)
    if unwrap in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(unwrap)


def watchglass(shell, line):
    """``%watchglass``: see ``USAGE``."""
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        # A quote alone, as in "it's slow".
        words = line.split()
    cells = _cells.get(id(shell))
    if words == ["off"]:
        unload(shell)
    elif words[:1] == ["mark"] and len(words) > 1:
        mark(" ".join(words[1:]))
    elif words in (["labels", "on"], ["labels", "off"]) and cells is not None:
        cells.labels = words[1] == "on"
    elif words in (["enable"], ["disable"]):
        print(every_time(shell, words == ["enable"]))
    else:
        asked = page_asked(words)
        print(USAGE) if asked is None else show(**asked)


def page_asked(words):
    """The height of the page and its first charts, from the arguments of ``%watchglass``; None for invalid
    arguments."""
    asked = {"height": 480, "panels": []}
    for name, value in zip(words[::2], words[1::2]):
        if name == "--height" and value.isdigit() and 100 <= int(value) <= 4000:
            asked["height"] = int(value)
        elif name == "--panels":
            asked["panels"] = [panel for panel in value.split(",") if panel]
        else:
            return None
    return None if len(words) % 2 else asked


def every_time(shell, wanted):
    """Makes each kernel of the profile load this at its start, or no longer. Returns the result in words."""
    folder = getattr(getattr(shell, "profile_dir", None), "startup_dir", None)
    if not folder:
        return "this IPython has no profile; write %load_ext watchglass into the notebook"
    path = os.path.join(folder, "50-watchglass.py")
    try:
        if wanted:
            with open(path, "w", encoding="utf-8") as file:
                file.write(STARTUP)
            return "new kernels now load watchglass: " + path
        if not os.path.exists(path):
            return "kernels do not load watchglass"
        os.remove(path)
        return "kernels no longer load watchglass: removed " + path
    except OSError as error:
        return "%s: %s; nothing was changed" % (path, error.strerror or type(error).__name__)


def address(panels=()):
    """The address of the page for the browser of this notebook, from the host's environment. The charts ``panels`` come
    first in it."""
    from urllib.parse import urlencode

    at = os.environ.get("WATCHGLASS_URL", "")
    port = "7171"
    if not at.startswith(("http://", "https://")):
        pattern = os.environ.get("VSCODE_PROXY_URI", "")
        if "{{port}}" in pattern:
            at = pattern.replace("{{port}}", port)
        elif os.environ.get("VSCODE_PID"):
            at = "http://localhost:%s/" % port
        elif os.environ.get("JUPYTERHUB_SERVICE_PREFIX"):
            at = os.environ["JUPYTERHUB_SERVICE_PREFIX"].rstrip("/") + "/watchglass/"
        else:
            base = _base_url()
            at = "http://127.0.0.1:%s/" % port if base is None else base.rstrip("/") + "/watchglass/"
    kernel = client.kernel_id()
    asked = ([("kernel", kernel)] if kernel else []) + ([("front", ",".join(panels))] if panels else [])
    return at.rstrip("/") + "/" + ("?" + urlencode(asked, safe=",") if asked else "")


def _base_url():
    """The base URL of the Jupyter server that started this kernel, from its file in the folder of the kernel's file."""
    path, parent = client.connection_file(), os.environ.get("JPY_PARENT_PID", "")
    if path is None or not parent.isdigit():
        return None
    try:
        name = os.path.join(os.path.dirname(path), "jpserver-%s.json" % parent)
        with open(name, encoding="utf-8") as file:
            base = json.load(file).get("base_url")
    except (OSError, ValueError, AttributeError):
        return None
    return base if isinstance(base, str) and base.startswith("/") else None


def show(height, panels=()):
    """Shows the page below the cell, and its address, because an untrusted notebook has no frames."""
    if "google.colab" in sys.modules and not os.environ.get("WATCHGLASS_URL"):
        from google.colab import output

        output.serve_kernel_port_as_iframe(7171, height=height)
        return
    import html

    from IPython.display import display

    at = address(panels)
    src = html.escape(at, quote=True)
    frame = '<iframe src="%s" title="Watchglass" width="100%%" height="%d" style="border:0"></iframe>' % (src, height)
    link = '<div><a href="%s" target="_blank" rel="noopener">Watchglass</a></div>' % src
    display({"text/html": frame + link, "text/plain": "Watchglass: " + at}, raw=True)
