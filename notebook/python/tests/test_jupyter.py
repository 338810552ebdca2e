"""Tests the entry for jupyter-server-proxy."""

import os
import subprocess
import sys
import unittest
from unittest import mock

from watchglass import client, jupyter

from .case import SOON, Case


@unittest.skipIf(os.name == "nt", "needs Unix sockets")
class Entry(Case):
    """The program is found. Without it the page gives the reason."""

    def test_the_program_is_taken_from_beside_python_before_the_path(self):
        beside = os.path.join(self.state, "{bin}")
        os.mkdir(beside)
        program = os.path.join(beside, "watchglass")
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        with mock.patch.object(sys, "executable", os.path.join(beside, "python")):
            with mock.patch.object(jupyter.shutil, "which", return_value="/other/watchglass"):
                self.assertNotEqual(jupyter.binary(), program, "it cannot be run")
                os.chmod(program, 0o755)
                entry = jupyter.server()
        words = [word.format(unix_socket="/run/a.sock") for word in entry["command"]]
        self.assertEqual(words, [program, "serve", "--unix", "/run/a.sock", "--join", "--exit-with-parent"])
        self.assertIs(entry["unix_socket"], True)
        self.assertIs(entry["update_last_activity"], False)
        self.assertTrue(os.path.isfile(entry["launcher_entry"]["icon_path"]))

    def test_without_the_program_a_page_gives_the_reason(self):
        with mock.patch.object(jupyter, "binary", return_value=None):
            entry = jupyter.server()
        self.reason(entry, "pip install watchglass")

    def test_an_entry_never_raises(self):
        with mock.patch.object(jupyter, "binary", side_effect=OSError("<no folder>{}")):
            entry = jupyter.server()
        self.reason(entry, "&lt;no folder&gt;{}")

    def reason(self, entry, text):
        """Starts the entry's command as jupyter-server-proxy does, and expects ``text`` in its page."""
        import http.client
        import socket
        import time

        path = os.path.join(self.state, "page.sock")
        process = subprocess.Popen([word.format(unix_socket=path) for word in entry["command"]])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until = time.monotonic() + SOON
        while True:
            asked = socket.socket(socket.AF_UNIX)
            try:
                asked.connect(path)
                break
            except OSError:
                asked.close()
                self.assertLess(time.monotonic(), until, "it listens")
                time.sleep(0.05)
        connection = http.client.HTTPConnection("localhost")
        connection.sock = asked
        connection.request("GET", "/any")
        page = connection.getresponse().read().decode()
        connection.close()
        self.assertIn(text, page)


class Place(Case):
    """The address of the page, for each host."""

    def test_the_host_is_told_by_its_environment(self):
        from watchglass import magic

        self.assertEqual(magic.address(), "http://127.0.0.1:7171/")
        os.environ["JUPYTERHUB_SERVICE_PREFIX"] = "/user/a/"
        self.assertEqual(magic.address(), "/user/a/watchglass/")
        os.environ["VSCODE_PROXY_URI"] = "https://host/proxy/{{port}}"
        self.assertEqual(magic.address(), "https://host/proxy/7171/")
        os.environ["WATCHGLASS_URL"] = "http://gpu:80/base"
        self.assertEqual(magic.address(), "http://gpu:80/base/")

    def test_a_kernel_takes_the_base_of_the_jupyter_that_started_it(self):
        from watchglass import magic

        kernel = "8b1a1b4e-4a4e-4f7e-9d43-0123456789ab"
        path = os.path.join(self.state, "kernel-%s.json" % kernel)
        os.environ["JPY_PARENT_PID"] = "77"
        with open(os.path.join(self.state, "jpserver-77.json"), "w", encoding="utf-8") as file:
            file.write('{"base_url": "/base/"}')
        with mock.patch.object(client, "connection_file", return_value=path):
            self.assertEqual(magic.address(), "/base/watchglass/?kernel=" + kernel)


if __name__ == "__main__":
    unittest.main()
