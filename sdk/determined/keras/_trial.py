"""The class that users subclass to train a Keras model."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras

from determined._trial import Trial

if TYPE_CHECKING:
    from determined.keras._context import TFKerasTrialContext
    from determined.keras._data import InputData


class TFKerasTrial(Trial, abc.ABC):
    """Subclass it, and name the class as `entrypoint: model_def:MyTrial`.

    The metrics are those of `model.compile()`. Validation metrics get the prefix `val_`, so `searcher.metric`
    is `val_loss` or `val_accuracy`, for example.

    Example:
        ```python
        class DigitsTrial(TFKerasTrial):
            def __init__(self, context):
                self.context = context

            def build_model(self):
                layers = [keras.layers.Dense(10, activation="softmax")]
                model = self.context.wrap_model(keras.Sequential(layers))
                optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(self.context.get_hparam("lr")))
                model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
                return model

            def build_training_data_loader(self):
                return training_images, training_labels

            def build_validation_data_loader(self):
                return test_images, test_labels
        ```
    """

    @abc.abstractmethod
    def __init__(self, context: TFKerasTrialContext) -> None:
        """Store the context.

        Args:
            context: Provides hyperparameters, and wraps the model, its optimizer and `tf.data` data sets.
        """

    @abc.abstractmethod
    def build_model(self) -> keras.Model:
        """Return the compiled model, which `context.wrap_model()` returned.

        Returns:
            The model, compiled.

        Example:
            ```python
            def build_model(self):
                model = self.context.wrap_model(keras.Sequential([keras.layers.Dense(10)]))
                optimizer = self.context.wrap_optimizer(keras.optimizers.Adam())
                model.compile(optimizer=optimizer, loss="mse")
                return model
            ```
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> InputData:
        """Return the training data.

        Returns:
            Either a tuple `(x, y)` or `(x, y, sample_weights)` of arrays, whose first dimension is the
            records. It is split into batches of `context.get_per_slot_batch_size()`. Or batches: a
            `keras.utils.PyDataset` (`Sequence`), a `SequenceAdapter`, or a `tf.data.Dataset` returned by
            `context.wrap_dataset()`.

        Example:
            ```python
            def build_training_data_loader(self):
                x, y = load_digits(return_X_y=True)
                return x / 16, y
            ```
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> InputData:
        """Return the validation data, in one of the forms of the training data.

        Returns:
            Data of the whole set, not only of this rank.

        Example:
            ```python
            def build_validation_data_loader(self):
                return self.validation_images, self.validation_labels
            ```
        """

    def keras_callbacks(self) -> Sequence[keras.callbacks.Callback]:
        """Return the callbacks of this trial; see `determined.keras.callbacks`.

        Returns:
            The callbacks; by default none.

        Example:
            ```python
            def keras_callbacks(self):
                return [callbacks.EarlyStopping(monitor="val_loss", patience=3)]
            ```
        """
        return []

    def session_config(self) -> Any:
        """Return None. Sessions belonged to TensorFlow 1, and nothing uses their configuration."""
        return None
