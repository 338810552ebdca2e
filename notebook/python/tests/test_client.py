"""Tests the client, and that markers never block their caller."""

import hashlib
import json
import os
import socket
import threading
import unittest

import watchglass
from watchglass import client, values

from .case import SOON, Case
from .server import FakeServer


class Road(Case):
    """Search for the server, and its answers."""

    def test_the_socket_is_where_the_server_puts_it(self):
        name = hashlib.sha256(self.data.encode()).digest()[:8].hex() + ".sock"
        login = os.path.join("/run/user/%d" % os.geteuid(), "watchglass", name)
        of_login = [login] if os.path.isdir("/run/user/%d" % os.geteuid()) else []
        self.assertEqual(client.sockets(), of_login + [os.path.join(self.data, "control.sock")])
        os.environ["XDG_RUNTIME_DIR"] = self.state
        self.assertEqual(client.sockets()[0], os.path.join(self.state, "watchglass", name))
        os.environ["XDG_STATE_HOME"] = "relative"
        os.makedirs(os.path.join(self.state, ".local", "state", "watchglass"))
        self.assertEqual(client.sockets()[1], os.path.join(self.state, ".local/state/watchglass/control.sock"))
        del os.environ["HOME"]
        self.assertEqual(client.sockets(), [])

    def test_within_a_run_a_marker_is_one_datagram(self):
        path = os.path.join(self.data, "run.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(SOON)
            sock.bind(path)
            self.assertFalse(client.told({"text": "x"}), "no run")
            os.environ["WATCHGLASS_SOCKET"] = path
            watchglass.mark("epoch 3", step=1200)
            told = json.loads(sock.recv(4096))
            self.assertEqual((told["text"], told["step"], told["kind"]), ("epoch 3", 1200, "note"))
            self.assertEqual(watchglass.status()["sent"], 1)
        os.remove(path)
        self.assertFalse(client.told({"text": "x"}), "nobody listens")
        # Requests other than datagrams go to the server of this user, not to that socket.
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        fake.answers["/api/v1/query"] = (200, {"series": []})
        self.assertEqual(watchglass.query("x"), {})

    def test_without_a_server_the_error_says_what_to_do(self):
        with self.assertRaisesRegex(client.Unreachable, "start one with `watchglass`"):
            client.ask("api/v1/kernels")
        os.environ["WATCHGLASS_URL"] = "7171"
        with self.assertRaisesRegex(client.Unreachable, "write http://localhost:7171/"):
            client.ask("api/v1/kernels")

    def test_an_address_that_does_not_respond_is_named_with_its_reason(self):
        os.environ["WATCHGLASS_URL"] = "unix:" + os.path.join(self.data, "none.sock")
        with self.assertRaisesRegex(client.Unreachable, "WATCHGLASS_URL does not respond: .*No such file"):
            client.ask("api/v1/kernels")

    def test_the_sentence_of_a_refusal_comes_through(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        fake.answers["/api/v1/query"] = (404, {"error": "no metric has the tag \"x\""})
        with self.assertRaisesRegex(client.Refused, "no metric has the tag"):
            watchglass.query("x")

    def test_a_server_that_cannot_now_is_one_that_does_not_answer_yet(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        for status in (429, 502, 503, 504):
            fake.answers["/api/v1/query"] = (status, {"error": "it is starting"})
            with self.assertRaisesRegex(client.Unreachable, "it is starting"):
                watchglass.query("x")

    def test_the_page_of_a_proxy_is_no_answer_of_the_server(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        page = "<html><head><title>502 Bad Gateway</title></head></html>"
        fake.answers["/api/v1/markers"] = (502, page)
        watchglass.mark("while the hub starts")
        self.assertFalse(client.sender().flush(SOON))
        self.assertEqual((watchglass.status()["queued"], watchglass.status()["dropped"]), (1, 0))
        fake.answers["/api/v1/markers"] = (200, {"taken": 1, "dropped": 0})
        self.assertTrue(client.sender().flush(SOON))
        self.assertEqual(watchglass.status()["sent"], 1)
        # A part of a request that a proxy finds too large may fit.
        fake.answers["/api/v1/query"] = (413, page)
        with self.assertRaises(client.Refused) as refused:
            watchglass.query("x")
        self.assertEqual(refused.exception.status, 413)

    def test_a_query_is_columns_by_tag(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        rows = [{"tag": "gpu.0.memory", "source": "a", "unit": "bytes", "points": [[1.5, 7], [2.5, 8]]}]
        fake.answers["/api/v1/query"] = (200, {"series": rows})
        told = watchglass.query("gpu.*.memory", last="1h")
        self.assertEqual(told, {"gpu.0.memory": {"unit": "bytes", "t": [1.5, 2.5], "value": [7, 8]}})
        self.assertEqual(fake.asked[0][1], "/api/v1/query?tag=gpu.%2A.memory&from=-1h")
        os.environ["WATCHGLASS_URL"] = "unix:" + fake.path
        rows[0] = {"tag": "gpu.0.memory", "source": "a", "unit": "bytes", "buckets": [{"t": 60, "min": 1, "mean": 2}]}
        self.assertEqual(watchglass.query("gpu.*.memory", step="1m")["gpu.0.memory"]["mean"], [2])

    def test_a_hub_gets_the_key_the_machine_and_no_process(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        fake.answers["/api/v1/values"] = (200, {"taken": 1, "dropped": 0})
        os.environ.update(WATCHGLASS_URL="unix:" + fake.path, WATCHGLASS_KEY="wg_s_x", WATCHGLASS_SOURCE="node 7")
        os.environ["WATCHGLASS_RUN_ID"] = "etl-1"
        watchglass.mark("loaded", step=3)
        self.assertTrue(client.sender().flush(SOON))
        own = values.Values()
        own._calls.append(({"loss": 0.5}, None))
        own.send()
        (_, mark_path, headers, mark), (_, value_path, _, value) = fake.asked
        self.assertEqual(headers["Authorization"], "Bearer wg_s_x")
        self.assertEqual(mark_path, "/api/v1/markers?source=node%207")
        self.assertEqual(value_path, "/api/v1/values?source=node%207")
        (mark,) = json.loads(mark)["markers"]
        self.assertEqual((mark["run"], mark.get("pid")), ("etl-1", None))
        self.assertEqual(json.loads(value), {"values": {"loss": 0.5}, "run": "etl-1"})

    def test_an_alert_at_a_hub_has_its_machine_and_its_run(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        fake.answers["/api/v1/alerts"] = (201, {"id": "a", "count": 1})
        os.environ.update(WATCHGLASS_URL="unix:" + fake.path, WATCHGLASS_SOURCE="node 7", WATCHGLASS_RUN_ID="etl-1")
        for key in ("wg_s_x", ""):
            os.environ["WATCHGLASS_KEY"] = key
            watchglass.alert("disk is slow")
            self.assertTrue(client.sender().flush(SOON))
        at_hub, here = (json.loads(body) for _, _, _, body in fake.asked)
        self.assertEqual((at_hub["source"], at_hub["run"]), ("node 7", "etl-1"))
        self.assertFalse({"source", "run"} & set(here))

    def test_a_key_is_never_sent_in_plain_text(self):
        os.environ["WATCHGLASS_KEY"] = "wg_s_x"
        for url in ("", "http://hub.example.org/", "hub.example.org"):
            os.environ["WATCHGLASS_URL"] = url
            with self.assertRaisesRegex(client.Unreachable, "by https only"):
                client.ask("api/v1/markers", b"{}")


class Figures(Case):
    """Charts that are saved in the notebook."""

    def test_a_figure_is_svg_and_says_its_numbers(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        svg = "<svg xmlns='x'><title>GPU utilization\nGPU 0: mean 90 %, &lt;1 to 99 %</title></svg>"
        fake.texts["/api/v1/figure"] = svg
        drawn = watchglass.figure("gpu.*.gpu", last="10m", theme="dark")
        self.assertEqual(drawn._repr_mimebundle_()["image/svg+xml"], svg)
        self.assertEqual(str(drawn), "GPU utilization\nGPU 0: mean 90 %, <1 to 99 %")
        self.assertEqual(fake.asked[0][1], "/api/v1/figure?tag=gpu.%2A.gpu&theme=dark&width=720&height=316&from=-10m")

    def test_a_cell_is_the_span_of_its_newest_run(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        runs = [{"n": 4, "from": 30.0}, {"n": 3, "from": 20.0, "to": 25.5}, {"n": 2, "from": 1.0, "to": 2.0}]
        fake.answers["/api/v1/cells"] = (200, {"cells": runs})
        fake.texts["/api/v1/figure"] = "<svg></svg>"
        for cell, span in [(-1, "from=20.000&to=25.500"), (2, "from=1.000&to=2.000"), (-2, "from=1.000&to=2.000")]:
            watchglass.figure("cpu", cell=cell)
            self.assertTrue(fake.asked[-1][1].endswith(span), fake.asked[-1])
        for cell in (-3, 4):
            with self.assertRaisesRegex(LookupError, "no cell"):
                watchglass.figure("cpu", cell=cell)


class Markers(Case):
    """Sent markers, and those that cannot be sent."""

    def test_markers_arrive_in_turn(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        sender = self.sender()
        for number in range(1000):
            sender.put({"text": "é" * 20, "step": number})
        self.assertTrue(sender.flush(SOON))
        self.assertEqual([one["step"] for one in fake.markers()], list(range(1000)))
        _, path, headers, body = max(fake.asked, key=lambda asked: len(asked[3]))
        self.assertEqual((path, headers["Content-Type"]), ("/api/v1/markers", "application/json"))
        self.assertLess(len(body), 64 << 10)
        self.assertLessEqual(len(json.loads(body)["markers"]), 256)

    def test_what_waits_is_bounded_and_what_is_dropped_is_counted(self):
        let_go, sent = threading.Event(), []

        def slow(_, body):
            let_go.wait(SOON)
            sent.extend(json.loads(body)["markers"])
            return {"taken": 1, "dropped": 0}

        sender = self.sender(limit=10, ask=slow)
        for number in range(10_000):
            sender.put({"step": number})
        let_go.set()
        self.assertTrue(sender.flush(SOON))
        self.assertEqual(sender.dropped + len(sent), 10_000)
        self.assertLessEqual(len(sent), 10 + 10, "those that wait, and those of one request")
        self.assertEqual(sent[-1]["step"], 9_999, "the newest ones are kept")

    def test_what_the_server_drops_or_refuses_is_counted(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        sender = self.sender()
        fake.answers["/api/v1/markers"] = (200, {"taken": 0, "dropped": 1})
        sender.put({"step": 1})
        self.assertTrue(sender.flush(SOON))
        fake.answers["/api/v1/markers"] = (400, {"error": "no"})
        sender.put({"step": 2})
        sender.put({"step": object()})
        self.assertTrue(sender.flush(SOON))
        self.assertEqual((sender.dropped, sender.failed), (3, 0))

    def test_one_marker_that_is_wrong_takes_no_other_with_it(self):
        begun, let_go, taken = threading.Event(), threading.Event(), []

        def ask(_, body):
            begun.set()
            let_go.wait(SOON)
            steps = [one["step"] for one in json.loads(body)["markers"]]
            if 77 in steps:
                refused = client.Refused("marker 77 is none")
                refused.status = 400
                raise refused
            taken.extend(steps)
            return {"taken": len(steps), "dropped": 0}

        sender = self.sender(ask=ask)
        sender.put({"step": 0})
        begun.wait(SOON)
        for number in range(1, 101):
            sender.put({"step": number})
        let_go.set()
        self.assertTrue(sender.flush(SOON))
        self.assertEqual(taken, [number for number in range(101) if number != 77])
        self.assertEqual((sender.dropped, sender.failed), (1, 0))

    def test_without_a_server_nothing_happens_and_one_that_comes_gets_all(self):
        sender = self.sender()
        sender.put({"step": 1})
        self.assertFalse(sender.flush(SOON), "nobody listens, and that is found at once")
        self.assertGreater(sender.failed, 0)
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        while not sender.flush(SOON):
            pass
        self.assertEqual((fake.markers(), sender.dropped), ([{"step": 1}], 0))

    def test_a_deaf_server_holds_nobody_up(self):
        deaf = FakeServer(self.data, silent=True)
        self.addCleanup(deaf.end)
        sender = self.sender(limit=3, ask=lambda path, body: client.ask(path, body, timeout=0.2))
        for number in range(100):
            sender.put({"step": number})
        self.assertFalse(sender.flush(SOON))
        self.assertGreater(sender.failed, 0)
        self.assertGreaterEqual(sender.dropped, 100 - 3 - 3)

    def test_marks_and_spans_never_raise(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        watchglass.mark("épo" * 200, kind="epoch", step=7)
        with self.assertRaises(KeyError), watchglass.span("train"):
            raise KeyError("mine")
        watchglass.mark("a", step="no number")
        watchglass.mark("\ud800")
        while not client.sender().flush(SOON):
            pass
        first, second = fake.markers()[:2]
        self.assertLessEqual(len(first["text"].encode()), 256)
        self.assertEqual((first["kind"], first["step"], first["pid"]), ("epoch", 7, os.getpid()))
        self.assertEqual((second["text"], second["end"] >= second["t"]), ("train", True))
        self.assertEqual(len({one["id"] for one in fake.markers()}), len(fake.markers()))
        os.environ["WATCHGLASS_NOTEBOOK"] = "off"
        count = len(fake.markers())
        watchglass.mark("off")
        client.sender().flush(SOON)
        self.assertEqual(len(fake.markers()), count)

    def test_alerts_never_raise_and_go_one_by_one_between_markers(self):
        fake = FakeServer(self.data)
        fake.answers["/api/v1/alerts"] = (201, {"id": "a", "count": 1})
        self.addCleanup(fake.end)
        watchglass.mark("before")
        watchglass.alert("loss is {NaN}", text="step 3\n@everyone", severity="critical", wait=90.5)
        watchglass.alert("é" * 200, wait="30m")
        watchglass.alert(None, wait="soon")
        watchglass.alert("\ud800", wait=object())
        watchglass.mark("after")
        while not client.sender().flush(SOON):
            pass
        alerts = [json.loads(body) for _, path, _, body in fake.asked if path == "/api/v1/alerts"]
        first, second = alerts[:2]
        said = (first["title"], first["text"], first["severity"], first["wait"])
        self.assertEqual(said, ("loss is {NaN}", "step 3\n@everyone", "critical", "90s"))
        self.assertEqual((second["title"], second["wait"], "text" in second), ("é" * 75, "30m", False))
        self.assertEqual(len({alert["id"] for alert in alerts}), len(alerts))
        markers = [json.loads(body) for _, path, _, body in fake.asked if path == "/api/v1/markers"]
        self.assertEqual([one["text"] for sent in markers for one in sent["markers"]], ["before", "after"])
        self.assertEqual((client.sender().dropped, client.sender().failed), (1, 0), "the last alert has no valid wait")

    def test_an_alert_of_a_run_is_one_datagram(self):
        path = os.path.join(self.data, "run.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(path)
            os.environ["WATCHGLASS_SOCKET"] = path
            watchglass.alert("loss is NaN", text="\x01" * 2000)
            said = server.recv(65536)
            self.assertLessEqual(len(said), 2048)
            alert = json.loads(said)
            self.assertEqual((alert["alert"], alert["severity"], "id" in alert), ("loss is NaN", "warning", False))

    def test_what_could_not_be_sent_is_counted(self):
        watchglass.mark("early")
        self.assertFalse(client.sender().flush(SOON))
        status = watchglass.status()
        self.assertEqual((status["sent"], status["queued"], status["dropped"]), (0, 1, 0))
        self.assertGreater(status["failed"], 0)
        self.assertIn("start one with", status["error"])
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        self.assertTrue(client.sender().flush(SOON))
        self.assertEqual((watchglass.status()["sent"], watchglass.status()["queued"]), (1, 0))
        fake.answers["/api/v1/markers"] = (403, {"error": "only the user who runs this Watchglass can send markers"})
        watchglass.mark("late")
        self.assertTrue(client.sender().flush(SOON))
        status = watchglass.status()
        self.assertEqual((status["sent"], status["dropped"]), (1, 1))
        self.assertIn("only the user", status["error"])

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_forked_process_has_a_thread_of_its_own(self):
        fake = FakeServer(self.data)
        self.addCleanup(fake.end)
        watchglass.mark("parent")
        self.assertTrue(client.sender().flush(SOON))
        child = os.fork()
        if child == 0:
            try:
                watchglass.mark("child")
                arrived = client.sender().flush(SOON)
            except BaseException:
                arrived = False
            os._exit(0 if arrived else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([one["text"] for one in fake.markers()][-2:], ["parent", "child"])


if __name__ == "__main__":
    unittest.main()
