"""Tests the values of jobs: what is sent, and that a call costs a job nothing."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import watchglass
from watchglass import client, values
from watchglass.values import MAX_CALLS, MAX_NAMES, Values

from .case import SOON, Case
from .server import FakeServer


class Logged(Case):
    """Values by the socket of runs, and by requests."""

    def setUp(self):
        super().setUp()
        own = Values(ask=lambda path, body: self.answer(path, body), interval=0.01)
        patched = mock.patch.object(values, "_values", own)
        patched.start()
        self.addCleanup(patched.stop)
        patched = mock.patch.object(values, "SERVICES", ())
        patched.start()
        self.addCleanup(patched.stop)
        self.values, self.asked = own, []

    def answer(self, path, body):
        """Stands for a server that takes requests."""
        self.asked.append((path, json.loads(body)))
        return {"taken": 1, "dropped": 0}

    def listen(self, name="run.sock"):
        """A socket of runs in the data folder."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(sock.close)
        sock.settimeout(SOON)
        path = os.path.join(self.data, name)
        if os.path.exists(path):
            os.unlink(path)
        sock.bind(path)
        return sock

    def test_values_are_datagrams_and_numbers_that_json_has_not_are_texts(self):
        sock = self.listen()
        watchglass.log({"loss": 0.1 + 0.2, "lr": 1, "acc": float("nan"), "max": float("-inf")}, step=1200)
        told = json.loads(sock.recv(values.MESSAGE_BYTES))
        expected = {"loss": 0.1 + 0.2, "lr": 1.0, "acc": "NaN", "max": "-Infinity"}
        self.assertEqual(told, {"values": expected, "step": 1200, "pid": os.getpid()})
        self.until(lambda: self.values.sent)
        self.assertEqual(watchglass.status()["values"], {"sent": 4, "dropped": 0, "error": None})

    def test_the_last_value_counts_but_one_that_is_no_number_is_never_replaced(self):
        for loss in (1.0, 2.0, float("nan"), 3.0, float("inf"), 4.0):
            self.values._calls.append(({"loss": loss}, None))
        self.values._calls.append(({"step": 7, "eval": 5}, None))
        sent = [(given, step) for given, step in self.values._messages()]
        self.assertEqual(sent, [({"loss": "NaN"}, None), ({"loss": 4.0, "eval": 5.0}, 7)])
        self.assertEqual(self.values.dropped, 0)

    def test_what_is_no_value_is_dropped_and_counted(self):
        sock = self.listen()
        watchglass.log({"a b": 1, "x": "many", "not_a_number": 1, "y": None, "z": 2.5})
        self.assertEqual(json.loads(sock.recv(values.MESSAGE_BYTES))["values"], {"z": 2.5})
        self.assertEqual((self.values.dropped, self.until(lambda: self.values.sent)), (4, 1))
        watchglass.log({"n%d" % number: 1 for number in range(MAX_NAMES + 6)})
        self.assertEqual(len(json.loads(sock.recv(values.MESSAGE_BYTES))["values"]), MAX_NAMES)
        self.assertEqual(self.values.dropped, 10)
        for wrong in (None, 7, "loss", {"x"}):
            watchglass.log(wrong)
        self.assertEqual((self.values.dropped, "items" in self.values.error), (14, True))
        watchglass.log({"w": 1}, step="many")
        self.assertEqual(json.loads(sock.recv(values.MESSAGE_BYTES)), {"values": {"w": 1.0}, "pid": os.getpid()})
        self.assertEqual(self.values.error, "the step is no whole number from 0")
        self.assertEqual(self.values.status()["dropped"], 14)

    def test_no_step_and_no_lack_of_files_ends_the_thread(self):
        sock = self.listen()

        class Tensor:
            def __int__(self):
                raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")

        for step in (Tensor(), 10**5000, -1, float("nan")):
            watchglass.log({"loss": 1.0}, step=step)
            self.assertEqual(json.loads(sock.recv(values.MESSAGE_BYTES)), {"values": {"loss": 1.0}, "pid": os.getpid()})
        self.values._sock.close()
        self.values._sock = None
        with mock.patch("socket.socket", side_effect=OSError(24, "Too many open files")):
            watchglass.log({"loss": 2.0})
            self.until(lambda: self.asked)
        with mock.patch.object(self.values, "_messages", side_effect=RuntimeError("unexpected")):
            with mock.patch.object(values, "RETRY_INTERVAL", 0.01):
                watchglass.log({"loss": 3.0})
                self.until(lambda: self.values.error == "unexpected")
        watchglass.log({"loss": 4.0})
        self.assertEqual(json.loads(sock.recv(values.MESSAGE_BYTES))["values"], {"loss": 4.0})

    def test_a_tensor_with_a_gradient_is_read_without_it(self):
        class Tensor:
            def __float__(self):
                raise UserWarning("converting a tensor with requires_grad=True to a scalar")

            def detach(self):
                return 0.5

        watchglass.log({"loss": Tensor()})
        self.assertEqual(self.until(lambda: self.asked)[0][1]["values"], {"loss": 0.5})

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_process_that_is_forked_during_a_call_waits_for_nothing_and_counts_from_zero(self):
        self.values.dropped, client.sender().dropped = 3, 4
        with mock.patch.object(values, "_values", None), mock.patch.object(client, "_sender", None):
            with values._making, client._making:
                # A lock that can be taken twice is taken by another thread, which does not exist in the child.
                child = self.fork_below_a_thread()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        child = os.fork()
        if child == 0:
            os._exit(self.values.dropped + client.sender().dropped)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def fork_below_a_thread(self):
        """Forks in another thread than this one, which holds the locks. The child ends with 0 if it needs none of them."""
        children = []

        def fork():
            child = os.fork()
            if child == 0:
                signal.alarm(int(SOON))
                values.values()
                client.sender()
                os._exit(0)
            children.append(child)

        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()
        return children[0]

    def test_a_server_that_comes_back_gets_the_next_values(self):
        first = self.listen()
        watchglass.log({"loss": 1.0})
        first.recv(values.MESSAGE_BYTES)
        first.close()
        second = self.listen()
        watchglass.log({"loss": 2.0})
        self.assertEqual(json.loads(second.recv(values.MESSAGE_BYTES))["values"], {"loss": 2.0})
        self.assertEqual(self.asked, [])

    def test_without_a_socket_of_runs_they_are_requests_and_without_a_server_they_are_dropped(self):
        self.values.put({"loss": 1.5}, 3)
        self.assertEqual(self.until(lambda: self.asked)[0][0], "api/v1/values")
        self.assertEqual(self.asked[0][1], {"values": {"loss": 1.5}, "step": 3, "pid": os.getpid()})
        nobody = Values(interval=0.01)
        nobody.put({"loss": 1.5, "lr": 1.0}, None)
        self.assertEqual(self.until(lambda: nobody.dropped), 2)
        self.assertIn("no Watchglass responds", nobody.error)
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        fake.answers["/api/v1/values"] = (200, {"taken": 1, "dropped": 1})
        nobody.put({"loss": 1.5, "lr": 1.0}, None)
        self.assertEqual(self.until(lambda: nobody.sent), 1)
        self.assertEqual(nobody.dropped, 3)

    def until(self, happens):
        """Waits until something is true, and returns it."""
        begin = time.monotonic()
        while not happens():
            self.assertLess(time.monotonic() - begin, SOON)
            time.sleep(0.01)
        return happens()

    def test_calls_that_wait_are_bounded(self):
        with mock.patch.object(Values, "_run", lambda _: None):
            idle = Values()
            for number in range(MAX_CALLS + 5):
                idle.put({"loss": number}, None)
        self.assertEqual((len(idle._calls), idle.dropped), (MAX_CALLS, 5))

    def test_a_call_costs_at_most_five_microseconds(self):
        self.listen()
        given, clock = {"loss": 0.41, "lr": 1e-4, "tokens_per_s": 12_400}, time.perf_counter_ns
        taken = []
        for step in range(20_000):
            begin = clock()
            watchglass.log(given, step=step)
            taken.append(clock() - begin)
        self.assertLess(statistics.median(taken), 5_000)

    def test_a_process_that_ends_waits_until_the_server_has_its_last_values(self):
        sock, answered = self.listen(), []

        def serve():
            body, sender = sock.recvfrom(values.MESSAGE_BYTES)
            answered.append((json.loads(body)["values"], bool(sender)))
            sock.sendto(b"ok", sender)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        code = "import watchglass; watchglass.log({'loss': 0.5})"
        package = os.path.dirname(os.path.dirname(os.path.abspath(watchglass.__file__)))
        # The thread of the child would send before its end.
        code = "from watchglass import values; values.Values._run = lambda _: None\n" + code
        subprocess.run([sys.executable, "-c", code], env=dict(os.environ, PYTHONPATH=package), check=True, timeout=SOON)
        server.join(SOON)
        self.assertEqual(answered, [({"loss": 0.5}, True)])

    def test_off_is_off(self):
        with mock.patch.dict(os.environ, WATCHGLASS_NOTEBOOK="off"):
            watchglass.log({"loss": 1})
        self.assertEqual(len(self.values._calls), 0)


class Places(Case):
    """Search for the socket of runs."""

    def test_the_socket_of_runs_is_beside_that_of_the_server(self):
        os.environ["XDG_RUNTIME_DIR"] = self.state
        own = values.places()
        self.assertTrue(own[0].startswith(os.path.join(self.state, "watchglass")) and own[0].endswith("-run.sock"), own)
        self.assertEqual(own[1:2], [os.path.join(self.data, "run.sock")])
        self.assertEqual(own[2:], list(values.SERVICES))
        os.environ["WATCHGLASS_URL"] = "http://localhost:7171/"
        self.assertEqual(values.places(), [])
        os.environ["WATCHGLASS_SOCKET"] = "/a/run.sock"
        self.assertEqual(values.places(), ["/a/run.sock"])


if __name__ == "__main__":
    unittest.main()
