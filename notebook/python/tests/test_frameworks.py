"""Tests the callbacks with the real frameworks, where they are installed: a tiny model is trained on the CPU."""

import importlib.util
import tempfile
import unittest
from unittest import mock

import watchglass

from .case import Case


def needs(*names):
    """Skips a test unless these packages are installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, "needs " + ", ".join(missing))


class Frameworks(Case):
    """Each framework calls its callback, and the values arrive with their steps."""

    def setUp(self):
        super().setUp()
        self.logged = []

    def log(self, values, step=None):
        self.logged.append((values, step))

    def capture(self, module):
        """Captures what a callback logs."""
        patched = mock.patch.object(module, "log", self.log)
        patched.start()
        self.addCleanup(patched.stop)
        return module.WatchglassCallback

    @needs("torch", "lightning")
    def test_lightning(self):
        import lightning.pytorch as lightning
        import torch

        import watchglass.lightning

        class Line(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def training_step(self, batch, index):
                loss = self.layer(batch[0]).pow(2).mean()
                self.log("train/loss", loss)
                return loss

            def validation_step(self, batch, index):
                self.log("val/loss", self.layer(batch[0]).pow(2).mean())

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.01)

        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 1)), batch_size=2)
        callback = self.capture(watchglass.lightning)(every=2)
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            default_root_dir=self.state,
            callbacks=[callback],
        )
        trainer.fit(Line(), data, data)
        trained = [step for values, step in self.logged if "train/loss" in values]
        self.assertEqual(trained[:2], [1, 3], self.logged)
        values, step = self.logged[-1]
        self.assertEqual(step, 4)
        self.assertGreaterEqual(float(values["val/loss"]), 0.0)

    @needs("torch", "transformers", "accelerate")
    def test_transformers(self):
        import torch
        import transformers

        import watchglass.transformers

        class Line(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def forward(self, x, labels=None):
                y = self.layer(x)
                return {"loss": (y - labels).pow(2).mean(), "logits": y}

        rows = [{"x": torch.ones(1), "labels": torch.zeros(1)}] * 8
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        arguments = transformers.TrainingArguments(
            output_dir=folder.name,
            per_device_train_batch_size=2,
            max_steps=4,
            logging_steps=2,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        callback = self.capture(watchglass.transformers)()
        transformers.Trainer(Line(), arguments, train_dataset=rows, callbacks=[callback]).train()
        losses = [(values["loss"], step) for values, step in self.logged if "loss" in values]
        self.assertEqual([step for _, step in losses], [2, 4], self.logged)
        self.assertTrue(all(isinstance(loss, float) for loss, _ in losses), losses)

    @needs("torch")
    def test_a_plain_loop(self):
        import torch

        layer = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(layer.parameters(), 0.01)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(6, 1)), batch_size=2)
        with mock.patch.object(watchglass, "log", self.log):
            for (batch,) in watchglass.steps(data, first=5):
                loss = layer(batch).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                # A tensor is a number.
                watchglass.log({"loss": loss}, step=5)
        times = [step for values, step in self.logged if "step_time_s" in values]
        self.assertEqual(times, [5, 6, 7])
        self.assertEqual(len([values for values, _ in self.logged if "loss" in values]), 3)


if __name__ == "__main__":
    unittest.main()
