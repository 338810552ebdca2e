"""Tests the hooks and magics in a real IPython shell."""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import unittest
from unittest import mock

from watchglass import client, magic

from .case import SOON, Case
from .server import FakeServer

HAS_IPYTHON = importlib.util.find_spec("IPython") is not None


@unittest.skipUnless(HAS_IPYTHON, "needs IPython")
class Shell(Case):
    """Cells that run, and their markers."""

    def setUp(self):
        super().setUp()
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        # No history file: a test writes nothing outside of its folder.
        os.environ["IPYTHONDIR"] = os.path.join(self.state, "ipython")
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        self.shell = InteractiveShell(config=config)
        self.fake = FakeServer(self.data)
        self.addCleanup(self.fake.end)
        self.addCleanup(magic.unload, self.shell)
        self.run_cell("%load_ext watchglass")

    def run_cell(self, cell, **more):
        """Runs a cell and returns its output."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            self.shell.run_cell(cell, store_history=True, **more)
        return printed.getvalue()

    def told(self):
        """The received markers."""
        while not client.sender().flush(SOON):
            pass
        return self.fake.markers()

    def test_a_cell_is_a_start_and_an_end_whose_numbers_rise(self):
        self.assertEqual(self.told(), [], "the cell that loaded it has no begin")
        self.run_cell("secret = 1", cell_id="one")
        self.run_cell("{}['secret']", cell_id="two")
        self.run_cell("1 +")
        told = self.told()
        self.assertEqual([one["seq"] for one in told], [1, 2, 3, 4, 5, 6])
        self.assertEqual([one["phase"] for one in told], ["start", "end"] * 3)
        self.assertEqual([one.get("cell") for one in told], ["one", "one", "two", "two", None, None])
        self.assertEqual([one["ok"] for one in told[1::2]], [True, False, False])
        self.assertEqual([one.get("error") for one in told[1::2]], [None, "KeyError", "SyntaxError"])
        self.assertEqual([one["n"] for one in told[1::2]], [2, 3, 4])
        self.assertTrue(all(end["t"] >= start["t"] for start, end in zip(told[::2], told[1::2])))
        self.assertNotIn("secret", str(self.fake.asked))

    def test_cells_that_a_cell_runs_are_a_part_of_it(self):
        self.run_cell("get_ipython().run_cell('1')\nget_ipython().run_cell('1/0')", cell_id="outer")
        self.run_cell("2", cell_id="next")
        told = self.told()
        self.assertEqual([(one["cell"], one["phase"]) for one in told],
            [("outer", "start"), ("outer", "end"), ("next", "start"), ("next", "end")])
        self.assertTrue(told[1]["ok"])

    def test_the_first_line_is_told_where_it_is_asked_for(self):
        self.run_cell("%watchglass labels on")
        self.run_cell("\nfit(model)\nmore", cell_id="one")
        self.assertEqual([one.get("label") for one in self.told() if one.get("cell") == "one"], ["fit(model)"] * 2)

    def test_off_takes_it_all_away_and_a_second_load_does_not_double(self):
        self.run_cell("%load_ext watchglass")
        magic.load(self.shell)
        self.run_cell("1")
        self.assertEqual(len(self.told()), 4)
        self.run_cell("%watchglass off")
        count = len(self.told())
        self.run_cell("1")
        self.assertEqual(len(self.told()), count)
        self.assertNotIn(magic.unwrap, self.shell.input_transformers_cleanup)

    @mock.patch.object(magic, "PATIENCE", SOON)
    def test_a_watched_cell_runs_as_it_would_and_has_its_line(self):
        printed = self.run_cell("%%watch\nx = 1\nprint(x + 1)")
        self.assertIn("2\n[2] ", printed)
        self.assertIn("no Watchglass responds", printed)
        began = [one["t"] for one in self.told() if one["phase"] == "start"]
        self.assertEqual(self.shell.user_ns["x"], 1)

        def cells():
            start = [one["t"] for one in self.fake.markers() if one["phase"] == "start"][-1]
            return 200, {"cells": [{"from": began[0], "to": 1.0, "line": "the other"},
                {"from": start, "to": start + 1, "line": "[3] 41 s · GPU 0 83 % busy"}]}

        class Answers(dict):
            """Answers that are generated on request."""

            def items(self):
                yield from super().items()
                yield "/api/v1/cells", cells()

        self.fake.answers = Answers(self.fake.answers)
        printed = self.run_cell("%%watch\n1/0")
        self.assertIn("ZeroDivisionError", printed)
        self.assertIn("[3] 41 s · GPU 0 83 % busy", printed)

    @mock.patch.object(magic, "PATIENCE", SOON)
    @mock.patch.object(magic, "MIN_CHART_SECONDS", 0.0)
    def test_a_watched_cell_has_a_chart_unless_it_is_quiet(self):
        kernel = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
        gpus, shown = [], []

        def row():
            start = [one["t"] for one in self.fake.markers() if one["phase"] == "start"][-1]
            return {"kernel": kernel, "from": start, "to": start + 9, "line": "[3] 9 s", "finding": "GPU 0 was idle", "gpus": gpus}

        class Answers(dict):
            """Answers that are generated on request."""

            def items(self):
                yield from super().items()
                yield "/api/v1/cells", (200, {"cells": [row()]})

        self.fake.answers = Answers(self.fake.answers)
        self.fake.texts["/api/v1/figure"] = "<svg><title>memory</title></svg>"
        with mock.patch("IPython.display.display", shown.append):
            self.assertIn("[3] 9 s · GPU 0 was idle", self.run_cell("%%watch\n1"))
            gpus.extend([{"gpu": 1, "mean": 80.0}, {"gpu": 2}])
            self.run_cell("%%watch\n1")
            self.run_cell("%%watch --quiet\n1")
            self.fake.texts.clear()
            self.assertIn("[3] 9 s", self.run_cell("%%watch\n1"), "a chart that is refused is no fault of the cell's")
        self.assertEqual([one.svg for one in shown], ["<svg><title>memory</title></svg>"] * 2)
        asked = [path for _, path, _, _ in self.fake.asked if path.startswith("/api/v1/figure")]
        self.assertEqual(["tag=kernel.0a1b2c3d.memory" in asked[0], "tag=gpu.1.gpu&" in asked[1], len(asked)], [True, True, 3])

    def test_tags_of_notebooks_of_one_window_differ(self):
        ids = ["0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "v2-29684vbBrK2x9QmZt", "v2-29684kSC9njpUbH1b", "4711"]
        self.assertEqual([magic.short(one) for one in ids], ["0a1b2c3d", *ids[1:]])

    def test_the_page_is_shown_by_its_address(self):
        os.environ["WATCHGLASS_URL"] = 'http://h/"<b>'
        shown = []
        with mock.patch("IPython.display.display", lambda data, raw: shown.append(data)):
            self.run_cell("%watchglass --height 300")
        self.assertIn('src="http://h/&quot;&lt;b&gt;/"', shown[0]["text/html"])
        self.assertIn('height="300"', shown[0]["text/html"])
        with mock.patch("IPython.display.display", lambda data, raw: shown.append(data)):
            self.run_cell("%watchglass --panels gpu,memory --height 200")
        self.assertIn('/?front=gpu,memory"', shown[1]["text/html"])
        for wrong in ("--height a", "--height", "--width 3", "--panels gpu --height"):
            self.assertIn("%watchglass mark", self.run_cell("%watchglass " + wrong), wrong)

    def test_a_mark_is_told(self):
        self.run_cell('%watchglass mark "epoch 3"')
        self.run_cell("%watchglass mark it's slow")
        texts = [one.get("text") for one in self.told()]
        self.assertIn("epoch 3", texts)
        self.assertIn("it's slow", texts)

    def test_each_kernel_of_a_profile_loads_it_once_that_is_enabled(self):
        path = os.path.join(self.shell.profile_dir.startup_dir, "50-watchglass.py")
        self.assertIn(path, self.run_cell("%watchglass enable"))
        self.run_cell("%watchglass off")
        self.run_cell("%run -i " + path)
        self.assertIn("watchglass", self.shell.magics_manager.magics["line"])
        self.run_cell("%reload_ext watchglass")
        self.assertIn("removed " + path, self.run_cell("%watchglass disable"))
        self.assertFalse(os.path.exists(path))
        self.assertIn("kernels do not load", self.run_cell("%watchglass disable"))
        os.mkdir(path)
        self.assertIn("nothing was changed", self.run_cell("%watchglass enable"))

    def test_what_is_enabled_does_no_harm_once_the_package_has_gone(self):
        with mock.patch.object(self.shell.extension_manager, "load_extension", side_effect=ModuleNotFoundError("gone")):
            result = self.shell.run_cell(magic.STARTUP)
        self.assertTrue(result.success)


class Imports(unittest.TestCase):
    """Cost of loading."""

    def test_nothing_that_is_slow_is_imported(self):
        code = "import sys; before = set(sys.modules); import watchglass.magic; print(*(set(sys.modules) - before))"
        folder = os.path.dirname(os.path.dirname(os.path.abspath(client.__file__)))
        said = subprocess.run([sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, text=True, check=True)
        loaded = set(said.stdout.split())
        self.assertIn("watchglass.client", loaded)
        self.assertFalse(loaded & {"numpy", "pandas", "IPython", "html", "http.client", "asyncio", "ssl"}, loaded)


if __name__ == "__main__":
    unittest.main()
