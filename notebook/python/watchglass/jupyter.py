"""The entry for jupyter-server-proxy: `{base}/watchglass/` is the page, behind Jupyter's own login.

Run as a program, with a Unix socket or a port, this file serves one page with the reason why Watchglass is not
available.
"""

import html
import os
import shutil
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))


def places():
    """Folders in which pip may have put the program, the likelier first. Jupyter's PATH often lacks them."""
    folders = [os.path.dirname(sys.executable) if sys.executable else "", sysconfig.get_path("scripts")]
    scheme = {"nt": "nt_user"}.get(os.name, "osx_framework_user" if getattr(sys, "_framework", "") else "posix_user")
    if scheme in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme))
    # The folder for `pip install --target FOLDER`.
    folders.append(os.path.join(os.path.dirname(HERE), "bin"))
    return list(dict.fromkeys(folder for folder in folders if folder))


def binary():
    """The full path of the program `watchglass`, or None."""
    name = "watchglass.exe" if os.name == "nt" else "watchglass"
    for folder in places():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("watchglass")


def has_lab_extension():
    """Whether the extension for Lab is installed. It has a launcher card of its own, whose tab follows the
    notebooks."""
    folders = [os.path.join(sys.prefix, "share", "jupyter", "labextensions")]
    try:
        # Includes the folder of `pip install --user`, and those in JUPYTER_PATH.
        from jupyter_core.paths import jupyter_path

        folders += jupyter_path("labextensions")
    except Exception:
        pass
    return any(os.path.isfile(os.path.join(folder, "watchglass-lab", "package.json")) for folder in folders)


def server():
    """The entry that jupyter-server-proxy requests. It never raises, because a failed entry would appear only in
    Jupyter's log."""
    entry = {
        "timeout": 20,
        "new_browser_tab": False,
        "update_last_activity": False,
        "launcher_entry": {
            "title": "Watchglass",
            "icon_path": os.path.join(HERE, "icon.svg"),
            "category": "Notebook",
            "enabled": not has_lab_extension(),
        },
    }
    try:
        found = binary()
        reason = None
        if os.name == "nt":
            reason = "Here it is no part of Jupyter on Windows yet. Start `watchglass`, and open http://localhost:7171/"
        elif found is None:
            reason = "The program `watchglass` is not here: it was looked for in %s and in the PATH. Install it by " \
                "`pip install watchglass`, and start Jupyter again." % ", ".join(places())
    except Exception as error:  # For example a Python without schemes, or an unreadable folder.
        found, reason = None, "The program `watchglass` could not be looked for: %s." % error
    road = "{port}" if os.name == "nt" else "{unix_socket}"
    entry["unix_socket"] = os.name != "nt"
    if reason is None:
        command = [found, "serve", "--unix", road, "--join", "--exit-with-parent"]
    else:
        command = [sys.executable or "python3", "-I", os.path.abspath(__file__), road, reason]
    # jupyter-server-proxy expands braces in a command.
    entry["command"] = [word if word == road else word.replace("{", "{{").replace("}", "}}") for word in command]
    return entry


def serve(road, reason):
    """Serves the page with ``reason`` at ``road``, a Unix socket or a port of loopback, until the parent has ended."""
    import http.server
    import socketserver
    import threading
    import time

    text = "<!doctype html><meta charset=utf-8><title>Watchglass</title><p>%s" % html.escape(reason)
    page = text.encode("utf-8", "replace")

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers all requests with the page."""

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def address_string(self):
            return "client"

        def log_message(self, *_):
            pass

    def watch(parent):
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    if os.name != "nt":
        threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    if road.isdigit():
        listener = http.server.ThreadingHTTPServer(("127.0.0.1", int(road)), Handler)
    else:
        listener = type("Listener", (socketserver.ThreadingMixIn, socketserver.UnixStreamServer), {})(road, Handler)
        os.chmod(road, 0o600)
    listener.daemon_threads = True
    listener.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
