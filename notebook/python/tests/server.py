"""A server of markers on a Unix socket, for tests."""

import http.server
import json
import os
import socketserver
import threading


class FakeServer:
    """Keeps its requests. With ``silent`` it accepts connections and never answers. ``answers`` maps the prefix of a
    path to ``(status, object)`` or ``(status, text)``, ``texts`` to a text."""

    def __init__(self, folder, silent=False):
        self.path = os.path.join(folder, "control.sock")
        self.asked, self.texts = [], {}
        self.answers = {"/api/v1/markers": (200, {"taken": 1, "dropped": 0})}
        fake, self._let_go = self, threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers by ``answers``."""

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if silent:
                    fake._let_go.wait()
                    return
                fake.asked.append((self.command, self.path, dict(self.headers), body))
                found = [said for path, said in fake.answers.items() if self.path.startswith(path)]
                status, said = found[0] if found else (404, {"error": "nothing is there"})
                texts = [text for path, text in fake.texts.items() if self.path.startswith(path)]
                text = texts[0] if texts else said if isinstance(said, str) else json.dumps(said)
                status, text = 200 if texts else status, text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def address_string(self):
                return "client"

            def log_message(self, *_):
                pass

        class Listener(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            """One thread per connection."""

            daemon_threads = True
            request_queue_size = 64

        self._listener = Listener(self.path, Handler)
        threading.Thread(target=self._listener.serve_forever, args=(0.02,), daemon=True).start()

    def markers(self):
        """All received markers, in order."""
        return [one for method, _, _, body in list(self.asked) if method == "POST" for one in json.loads(body)["markers"]]

    def end(self):
        """Ends the server, and all connections that wait for an answer."""
        self._let_go.set()
        self._listener.shutdown()
        self._listener.server_close()
        os.unlink(self.path)
