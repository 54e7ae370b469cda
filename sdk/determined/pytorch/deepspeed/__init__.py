"""Training with DeepSpeed: resumable, distributed, and with hyperparameter search.

Requires the package `deepspeed`, on GPUs or, for experimenting, on CPUs. Importing this module does not
import `deepspeed`.

Example:
    ```python
    class MyTrial(DeepSpeedTrial):
        def __init__(self, context):
            self.context = context
            args = context.get_hparam("overwrite_deepspeed_args")
            config = overwrite_deepspeed_config("ds_config.json", args)
            engine, *_ = deepspeed.initialize(model=net, config=config)
            self.engine = context.wrap_model_engine(engine)

        def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
            x, y = self.context.to_device(next(dataloader_iter))
            loss = loss_of(self.engine(x), y)
            self.engine.backward(loss)
            self.engine.step()
            return {"loss": loss}
    ```
"""

from determined import _absent
from determined.pytorch.deepspeed._config import overwrite_deepspeed_config
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._mpu import (
    ModelParallelUnit,
    make_data_parallel_mpu,
    make_deepspeed_mpu,
)
from determined.pytorch.deepspeed._trial import DeepSpeedTrial

DeepSpeedTrial.trial_context_class = DeepSpeedTrialContext

__all__ = [
    "DeepSpeedTrial",
    "DeepSpeedTrialContext",
    "ModelParallelUnit",
    "make_data_parallel_mpu",
    "make_deepspeed_mpu",
    "overwrite_deepspeed_config",
]

_absent.explain_in(__name__)
