"""Handwritten digits in MNIST's layout: four idx files in a folder, read as tensors.

If the folder has no such files, they are made from the 8x8 images that come with scikit-learn, enlarged to
28x28; nothing is downloaded. The files of the real MNIST work as well.
"""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import TensorDataset

IMAGES, LABELS = 2051, 2049
"""Magic numbers at the start of both kinds of idx files."""
TEST_IMAGES = 297
MEAN, DEVIATION = 0.1307, 0.3081


def load(train: bool, folder: Path = Path("mnist")) -> TensorDataset:
    """Pairs of a normalized image (1, 28, 28) and its label; 1,500 for training and 297 for testing."""
    if not (folder / "train-images-idx3-ubyte.gz").exists():
        make(folder)
    name = "train" if train else "t10k"
    pixels = read(folder / f"{name}-images-idx3-ubyte.gz")
    labels = read(folder / f"{name}-labels-idx1-ubyte.gz")
    images = torch.from_numpy((pixels / 255.0 - MEAN) / DEVIATION).float().unsqueeze(1)
    return TensorDataset(images, torch.from_numpy(labels).long())


def make(folder: Path) -> None:
    """Write the four files; several processes may do so at once."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    pixels = np.kron(digits.images[order] * (255 / 16), np.ones((3, 3))).astype(np.uint8)
    pixels = np.pad(pixels, ((0, 0), (2, 2), (2, 2)))
    labels = digits.target[order].astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    cut = len(labels) - TEST_IMAGES
    for name, part in (("t10k", slice(cut, None)), ("train", slice(cut))):
        write(folder / f"{name}-labels-idx1-ubyte.gz", LABELS, labels[part])
        write(folder / f"{name}-images-idx3-ubyte.gz", IMAGES, pixels[part])


def write(path: Path, kind: int, values: np.ndarray) -> None:
    """Write one idx file atomically."""
    draft = path.with_suffix(f".{os.getpid()}")
    with gzip.open(draft, "wb") as file:
        file.write(struct.pack(f">{1 + values.ndim}i", kind, *values.shape) + values.tobytes())
    draft.replace(path)


def read(path: Path) -> np.ndarray:
    """The content of an idx file, in its shape."""
    content = gzip.decompress(path.read_bytes())
    dimensions = content[3]
    shape = struct.unpack_from(f">{dimensions}i", content, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy()
