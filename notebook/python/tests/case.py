"""What the tests have in common: an environment of their own."""

import os
import tempfile
import unittest
from unittest import mock

from watchglass import client

#: Seconds until something that has to happen has failed; a loaded machine needs a part of it.
SOON = 60.0


class Case(unittest.TestCase):
    """A test with a state folder and a data folder of its own, and with no host around it."""

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
        # A machine that stands still for some seconds is no server that does not answer.
        patient = self.sender(lambda path, body: client.ask(path, body, timeout=SOON))
        own = mock.patch.object(client, "_sender", patient)
        own.start()
        self.addCleanup(own.stop)

    def sender(self, ask=client.ask, **more):
        """A sender that tries again at once, and that gives up when the test is over: it would find the next one's
        server."""

        def until_over(path, body):
            if self.over:
                raise client.Refused("the test is over")
            return ask(path, body)

        return client.Sender(ask=until_over, retry=(0.01, 0.01), **more)
