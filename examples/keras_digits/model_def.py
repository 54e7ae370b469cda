"""A small convolutional network for handwritten digits in Keras 3, as a TFKerasTrial."""

import os

# For runs without the configuration, which sets the same; TensorFlow and JAX work as well.
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from sklearn.datasets import load_digits

from determined.keras import TFKerasTrial, TFKerasTrialContext, callbacks

TEST_IMAGES = 297


def digits(train):
    """Images (8, 8, 1) with values from 0 to 1 and their labels: 1,500 for training and 297 for testing."""
    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    part = order[TEST_IMAGES:] if train else order[:TEST_IMAGES]
    return data.images[part, ..., None].astype("float32") / 16, data.target[part]


class DigitsTrial(TFKerasTrial):
    """The model, its data and its metrics. The platform runs the training loop."""

    def __init__(self, context: TFKerasTrialContext) -> None:
        self.context = context

    def build_model(self):
        hparams = self.context.get_hparams()
        model = self.context.wrap_model(
            keras.Sequential(
                [
                    keras.Input((8, 8, 1)),
                    keras.layers.Conv2D(hparams["filters"], 3, activation="relu"),
                    keras.layers.Conv2D(2 * hparams["filters"], 3, activation="relu"),
                    keras.layers.Flatten(),
                    keras.layers.Dropout(hparams["dropout"]),
                    keras.layers.Dense(10, activation="softmax"),
                ]
            )
        )
        optimizer = self.context.wrap_optimizer(keras.optimizers.Adam(hparams["learning_rate"]))
        model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def build_training_data_loader(self):
        return digits(train=True)

    def build_validation_data_loader(self):
        return digits(train=False)

    def keras_callbacks(self):
        return [callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=2)]
