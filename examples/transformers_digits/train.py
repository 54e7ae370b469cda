"""A small vision transformer, made from its configuration, learns digits with Hugging Face's Trainer.

Run it here with `python3 train.py`, on a cluster with `det e create const.yaml . -f`.
"""

import logging
import os

import numpy as np
import torch
import transformers
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

import determined as det
from determined.transformers import DetCallback

LOCAL_HPARAMS = {"learning_rate": 0.003, "hidden_size": 32, "batch_size": 16}
LOCAL_EPOCHS = 12
TEST_IMAGES = 297


class Digits(Dataset):
    """Images (1, 8, 8) with values from 0 to 1 and their labels, from scikit-learn."""

    def __init__(self, train):
        digits = load_digits()
        order = np.random.RandomState(0).permutation(len(digits.target))
        part = order[TEST_IMAGES:] if train else order[:TEST_IMAGES]
        self.images = torch.tensor(digits.images[part] / 16, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(digits.target[part])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixel_values": self.images[index], "labels": self.labels[index]}


def network(hidden_size):
    return transformers.ViTForImageClassification(
        transformers.ViTConfig(
            image_size=8,
            patch_size=2,
            num_channels=1,
            num_labels=10,
            hidden_size=hidden_size,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * hidden_size,
        )
    )


def accuracy(predictions):
    return {"accuracy": float((predictions.predictions.argmax(-1) == predictions.label_ids).mean())}


def arguments(hparams, seed):
    return transformers.TrainingArguments(
        output_dir="output",
        num_train_epochs=LOCAL_EPOCHS,
        per_device_train_batch_size=hparams["batch_size"],
        per_device_eval_batch_size=64,
        learning_rate=hparams["learning_rate"],
        warmup_steps=100,
        logging_steps=50,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,
        report_to=[],
        # Without GPUs, several processes find each other only if the Trainer is told to use the CPU.
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        seed=seed,
    )


def main(core_context, info):
    # Several trials share this machine's cores.
    torch.set_num_threads(1)
    hparams = info.trial.hparams if info else LOCAL_HPARAMS
    seed = info.trial.trial_seed if info else 1
    args = arguments(hparams, seed)
    # Before the Trainer: the callback says where to resume from.
    callback = DetCallback(core_context, args)
    if callback.searcher_max_length is not None:
        args.num_train_epochs = callback.searcher_max_length
    transformers.set_seed(seed)
    trainer = transformers.Trainer(
        model=network(hparams["hidden_size"]),
        args=args,
        train_dataset=Digits(train=True),
        eval_dataset=Digits(train=False),
        compute_metrics=accuracy,
        callbacks=[callback],
    )
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)


def ranks():
    """The processes of the trial; None if there is only one."""
    if not os.environ.get("USE_TORCH_DISTRIBUTED"):
        return None
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return det.core.DistributedContext.from_torch_distributed()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    with det.core.init(distributed=ranks()) as core_context:
        main(core_context, det.get_cluster_info())
