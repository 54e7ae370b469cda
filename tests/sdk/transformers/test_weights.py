"""Weights whose stored names are of another release than the model's."""

import torch
import transformers
from safetensors.torch import load_file

from determined.transformers._weights import restore_renamed


def network():
    config = transformers.ViTConfig(
        image_size=4,
        patch_size=2,
        num_channels=1,
        num_labels=2,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    return transformers.ViTForImageClassification(config)


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_weights_are_those_that_were_stored(tmp_path):
    stored, other = network(), network()
    stored.save_pretrained(tmp_path)
    lost = other.load_state_dict(transformers_file(tmp_path), strict=False).missing_keys
    assert restore_renamed(other, tmp_path) == bool(lost)
    assert torch.equal(flat(other), flat(stored))


def transformers_file(folder):
    return load_file(folder / "model.safetensors")


def test_names_that_fit_are_left_to_the_trainer(tmp_path):
    model = torch.nn.Linear(2, 1)
    assert not restore_renamed(model, tmp_path)
