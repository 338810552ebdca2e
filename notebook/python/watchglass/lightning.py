"""Values of a Lightning trainer: ``Trainer(callbacks=[watchglass.lightning.WatchglassCallback()])``."""

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback

from . import log


class WatchglassCallback(Callback):
    """Logs the metrics of the trainer, such as the loss, after every ``every`` batches and each validation."""

    def __init__(self, every=10):
        self.every = max(1, int(every))

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        """Called by the trainer. Reading a metric waits for its device, so not every batch is read."""
        if batch_idx % self.every == 0:
            log(dict(trainer.callback_metrics), step=trainer.global_step)

    def on_validation_end(self, trainer, module):
        """Called by the trainer, also after its check before the training, whose metrics mean nothing."""
        if not trainer.sanity_checking:
            log(dict(trainer.callback_metrics), step=trainer.global_step)
