"""Base of the tests: an isolated environment."""

import os
import tempfile
import unittest
from unittest import mock

from watchglass import client

#: Maximum wait for an expected event, in seconds. A loaded machine needs a part of it.
SOON = 60.0


class Case(unittest.TestCase):
    """A test with a state folder and a data folder of its own, outside of any notebook host."""

    def setUp(self):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        self.state = os.path.realpath(state.name)
        self.data = os.path.join(self.state, "watchglass")
        os.mkdir(self.data)
        kept = {"PATH": os.environ.get("PATH", ""), "HOME": self.state, "XDG_STATE_HOME": self.state}
        patched = mock.patch.dict(os.environ, kept, clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.over = False
        self.addCleanup(setattr, self, "over", True)
        # On a machine that stalls for some seconds, the server must not count as unreachable.
        patient = self.sender(lambda path, body: client.ask(path, body, timeout=SOON))
        own = mock.patch.object(client, "_sender", patient)
        own.start()
        self.addCleanup(own.stop)

    def sender(self, ask=client.ask, **more):
        """A sender that retries at once, and gives up at the end of the test. Otherwise it would find the server of the
        next one."""

        def until_over(path, body):
            if self.over:
                raise client.Refused("the test is over")
            return ask(path, body)

        return client.Sender(ask=until_over, retry=(0.01, 0.01), **more)
