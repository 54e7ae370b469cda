"""Training of Keras models: resumable, distributed, and with hyperparameter search.

Requires Keras 3 (`pip install keras`) and one of its backends: PyTorch, TensorFlow or JAX. `tf.keras` in
TensorFlow 2.16 and later is Keras 3, so scripts that import it run unchanged.

Example:
    ```python
    class MyTrial(TFKerasTrial):
        def __init__(self, context):
            self.context = context

        def build_model(self):
            model = self.context.wrap_model(keras.Sequential([keras.layers.Dense(10, activation="softmax")]))
            optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(self.context.get_hparam("lr")))
            model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
            return model

        def build_training_data_loader(self):
            return x_train, y_train

        def build_validation_data_loader(self):
            return x_test, y_test
    ```
"""

from determined import _absent

from determined.keras import _backend  # isort: skip - before Keras is imported

_backend.choose()

from determined.keras import callbacks  # noqa: E402
from determined.keras._context import TFKerasExperimentalContext, TFKerasTrialContext  # noqa: E402
from determined.keras._data import InputData, SequenceAdapter  # noqa: E402
from determined.keras._load import load_model_from_checkpoint_path  # noqa: E402
from determined.keras._trial import TFKerasTrial  # noqa: E402
from determined.keras.callbacks import (  # noqa: E402
    Callback,
    EarlyStopping,
    ReduceLROnPlateau,
    TensorBoard,
)

TFKerasTensorBoard = callbacks.TensorBoard
"""The former name of `determined.keras.callbacks.TensorBoard`."""
TFKerasTrial.trial_context_class = TFKerasTrialContext

__all__ = [
    "Callback",
    "EarlyStopping",
    "InputData",
    "ReduceLROnPlateau",
    "SequenceAdapter",
    "TFKerasExperimentalContext",
    "TFKerasTensorBoard",
    "TFKerasTrial",
    "TFKerasTrialContext",
    "TensorBoard",
    "callbacks",
    "load_model_from_checkpoint_path",
]

_absent.explain_in(__name__)
