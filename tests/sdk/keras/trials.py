"""Small Keras trials that tests train."""

import keras
import numpy as np

from determined.keras import TFKerasTrial, callbacks

RECORDS = 24
X = np.arange(RECORDS, dtype="float32").reshape(-1, 1) / RECORDS
Y = X.copy()


class Pairs(keras.utils.PyDataset):
    """Batches of two records; keeps which it was asked for."""

    def __init__(self):
        super().__init__()
        self.indexes = []

    def __len__(self):
        return RECORDS // 2

    def __getitem__(self, index):
        self.indexes.append(index)
        return X[2 * index : 2 * index + 2], Y[2 * index : 2 * index + 2]


class Seen(callbacks.Callback):
    """Keeps what it was told, over pauses too."""

    def __init__(self):
        super().__init__()
        self.windows, self.epochs, self.tests, self.batches, self.folders = [], [], [], [], []

    def on_train_workload_end(self, total_batches_trained, logs):
        self.windows.append((total_batches_trained, logs["loss"]))

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(("begin", epoch))

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(("end", epoch, logs))

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append((batch, logs["loss"]))

    def on_test_end(self, logs=None):
        self.tests.append(logs)

    def on_checkpoint_end(self, checkpoint_dir):
        self.folders.append(checkpoint_dir)

    def get_state(self):
        return {"windows": self.windows}

    def load_state(self, state):
        self.windows = state["windows"]


class Random(TFKerasTrial):
    """Shuffled data, dropout, momentum: everything that a resumed run can get wrong."""

    declared = True
    further = ()

    def __init__(self, context):
        self.context = context
        self.recorder = Seen()

    def build_model(self):
        layers = [
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.GaussianNoise(0.1),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
        if self.declared:
            layers.insert(0, keras.Input((1,)))
        self.model = self.context.wrap_model(keras.Sequential(layers))
        optimizer = self.context.wrap_optimizer(keras.optimizers.SGD(0.05, momentum=0.9))
        self.model.compile(optimizer, loss="mse", metrics=["mae"])
        return self.model

    def build_training_data_loader(self):
        return X, Y

    def build_validation_data_loader(self):
        return X[:6], Y[:6]

    def keras_callbacks(self):
        return [self.recorder, *self.further]

    @property
    def losses(self):
        return [loss for _, loss in self.recorder.batches]


class Unbuilt(Random):
    """Learns the shapes of its weights from the first batch."""

    declared = False


class FromSequence(Random):
    """Batches by index."""

    def build_training_data_loader(self):
        return Pairs()
