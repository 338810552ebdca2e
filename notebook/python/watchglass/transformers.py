"""Values of Transformers' Trainer: ``Trainer(..., callbacks=[watchglass.transformers.WatchglassCallback()])``."""

from transformers import TrainerCallback

from . import log


class WatchglassCallback(TrainerCallback):
    """Logs what the trainer logs, such as loss, learning rate and gradient norm, with its step."""

    def on_log(self, args, state, control, logs=None, **_):
        """Called by the trainer every ``logging_steps`` steps. It gives texts, too, which are no values."""
        numbers = {name: value for name, value in (logs or {}).items() if isinstance(value, (int, float))}
        log(numbers, step=state.global_step)
