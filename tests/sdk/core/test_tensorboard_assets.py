"""Files of somebody else's experiment that tell a TensorBoard which other files to show."""

import pytest

from determined.exec.tensorboard import Source, fetch_all
from determined.storage import SharedFSStorageManager

EMBEDDING = 'embeddings {{ tensor_name: "w" tensor_path: "w.tsv" {} }}'
CONFIG, STATE = "projector_config.pbtxt", "checkpoint"


@pytest.fixture
def shown(tmp_path):
    """Store files of a trial as its script may, and return what a TensorBoard is given of them."""
    stored = tmp_path / "storage" / "trial"

    def shown(**files):
        for name, text in files.items():
            path = stored / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "scratch").mkdir(exist_ok=True)
        manager = SharedFSStorageManager(tmp_path / "storage")
        source = Source(manager, "trial", tmp_path / "shown", tmp_path / "scratch")
        fetch_all([source])
        fetch_all([source])
        return {path.relative_to(tmp_path / "shown").as_posix() for path in (tmp_path / "shown").rglob("*.*")}

    return shown


SECRETS = "/proc/self/environ"


@pytest.mark.parametrize(
    "text",
    [
        *(
            EMBEDDING.format(f'{field}_path: "{path}"')
            for field in ("metadata", "bookmarks", "tensor")
            for path in (
                SECRETS,
                "~/.ssh/id_rsa",
                "../../../info/cluster.json",
                "a/../../b",
                "file:///etc/passwd",
            )
        ),
        EMBEDDING.format(f'sprite {{ image_path: "{SECRETS}" }}'),
        # Other spellings of the same text.
        EMBEDDING.format(f"metadata_path: '{SECRETS}'"),
        EMBEDDING.format('metadata_path: "/pr" "oc/self/environ"'),
        EMBEDDING.format(r'metadata_path: "\057proc/self/environ"'),
        f'model_checkpoint_path: "{SECRETS}"',
        f'model_checkpoint_dir: "{SECRETS}"',
        "\0 nothing that could be read",
        "embeddings { unknown: 1 }",
    ],
)
@pytest.mark.parametrize("place", ["", "plugins__org_tensorflow_tensorboard_projector__"])
def test_whose_trial_it_is_does_not_choose_what_else_is_shown(shown, caplog, text, place):
    """Whoever may view the page would read files of who has started the TensorBoard, and their token."""
    names = shown(**{place + CONFIG: text, "events.1": "e"})
    assert names == {"events.1"}
    assert caplog.text.count("is not shown") == 1


@pytest.mark.parametrize("path", [SECRETS, "../../other"])
def test_nor_does_the_state_of_its_checkpoints(shown, caplog, path):
    text = f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n'
    assert shown(**{f"train__{STATE}": text, "train__w.index": "i"}) == {"train/w.index"}
    assert "is not shown" in caplog.text


def test_its_own_files_are_shown(shown, tmp_path, caplog):
    """As `SummaryWriter.add_embedding` and the callback of Keras name them."""
    text = EMBEDDING.format('metadata_path: "00001/default/metadata.tsv" tensor_shape: [2, 3]')
    state = 'model_checkpoint_path: "keras_embedding.ckpt-0"\nall_model_checkpoint_paths: "x"\n'
    names = shown(**{CONFIG: text, "w.tsv": "1\t2", STATE: state, f"empty__{CONFIG}": "# none\n"})
    assert names == {CONFIG, "w.tsv", f"empty/{CONFIG}"}
    assert (tmp_path / "shown" / STATE).read_text() == state
    assert "is not shown" not in caplog.text
