"""Tests the callbacks for frameworks against stand-ins with the same calls. test_frameworks has the real packages."""

import importlib
import sys
import types
import unittest
from unittest import mock

import watchglass

from .case import Case


class Callbacks(Case):
    """Each logs the numbers of its framework, with their step."""

    def setUp(self):
        super().setUp()
        self.logged = []
        taken = mock.patch.object(watchglass, "log", lambda values, step=None: self.logged.append((values, step)))
        taken.start()
        self.addCleanup(taken.stop)

    def load(self, name, **modules):
        """The module of a framework, with these stand-ins for its parts."""
        known = {path.replace("__", "."): module for path, module in modules.items()}
        with mock.patch.dict(sys.modules, known):
            sys.modules.pop("watchglass." + name, None)
            return importlib.import_module("watchglass." + name)

    def test_lightning(self):
        callbacks = types.ModuleType("lightning.pytorch.callbacks")
        callbacks.Callback = object
        parts = {"lightning": types.ModuleType("lightning"), "lightning__pytorch": types.ModuleType("lightning.pytorch")}
        module = self.load("lightning", lightning__pytorch__callbacks=callbacks, **parts)
        trainer = types.SimpleNamespace(callback_metrics={"train/loss": 0.5}, global_step=7, sanity_checking=False)
        callback = module.WatchglassCallback(every=2)
        for batch in range(4):
            callback.on_train_batch_end(trainer, None, None, None, batch)
        callback.on_validation_end(trainer, None)
        trainer.sanity_checking = True
        callback.on_validation_end(trainer, None)
        self.assertEqual(self.logged, [({"train/loss": 0.5}, 7)] * 3)

    def test_transformers(self):
        framework = types.ModuleType("transformers")
        framework.TrainerCallback = object
        module = self.load("transformers", transformers=framework)
        state = types.SimpleNamespace(global_step=9)
        module.WatchglassCallback().on_log(None, state, None, logs={"loss": 0.5, "note": "x"}, model=None)
        module.WatchglassCallback().on_log(None, state, None)
        self.assertEqual(self.logged, [({"loss": 0.5}, 9), ({}, 9)])

    def test_a_loop_logs_the_time_of_each_step(self):
        with mock.patch("time.perf_counter", iter([0.0, 0.25, 1.0, 1.5, 4.0, 4.0]).__next__):
            self.assertEqual(list(watchglass.steps(["a", "b"], first=5)), ["a", "b"])
        expected = [({"step_time_s": 1.0, "data_time_s": 0.25}, 5), ({"step_time_s": 3.0, "data_time_s": 0.5}, 6)]
        self.assertEqual(self.logged, expected)


if __name__ == "__main__":
    unittest.main()
