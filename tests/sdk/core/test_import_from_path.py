import sys
import textwrap
import threading

import pytest

import determined as det


def project(directory, name):
    package = directory / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sub.py").write_text(f"NAME = {name!r}")
    (directory / "data_of_test.py").write_text(f"NAME = {name!r}")
    (directory / "model_of_test.py").write_text(
        textwrap.dedent("""
        import data_of_test
        import pkg.sub

        def names():
            import data_of_test as late
            return data_of_test.NAME, pkg.sub.NAME, late.NAME
        """)
    )
    return directory


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current directory holds a `data_of_test` of its own, imported by the script."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "data_of_test.py").write_text("NAME = 'here'")
    (here / "only_here_of_test.py").write_text("NAME = 'here'")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(str(here))
    import data_of_test

    yield data_of_test
    for name in ("data_of_test", "only_here_of_test"):
        sys.modules.pop(name, None)


def test_directories_with_the_same_module_names_stay_apart(tmp_path, here):
    before_path, before_modules = list(sys.path), set(sys.modules)
    names = {}
    for name in ("first", "second"):
        with det.import_from_path(project(tmp_path / name, name)):
            import model_of_test

            assert sys.path[0] == str(tmp_path / name)
            names[name] = model_of_test
            assert model_of_test.names() == (name, name, name)
        assert not list((tmp_path / name).rglob("__pycache__"))
    assert names["first"].names()[:2] == ("first", "first")
    assert names["second"].names()[:2] == ("second", "second")
    assert sys.path == before_path
    assert set(sys.modules) == before_modules
    assert sys.modules["data_of_test"] is here


def test_what_the_path_lacks_is_found_beside_the_script(tmp_path, here):
    with det.import_from_path(project(tmp_path / "p", "p")):
        import only_here_of_test

        assert only_here_of_test.NAME == "here"
    assert "only_here_of_test" in sys.modules


def test_the_empty_entry_is_taken_off_and_put_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    with det.import_from_path("elsewhere"):
        assert "" not in sys.path
        assert sys.path[0] == "elsewhere"
    assert sys.path[0] == ""


def test_an_exception_inside_restores_everything(tmp_path, here):
    before = list(sys.path), sys.dont_write_bytecode
    with pytest.raises(ModuleNotFoundError), det.import_from_path(tmp_path):
        import no_such_module_of_test  # noqa: F401
    assert (list(sys.path), sys.dont_write_bytecode) == before
    assert sys.modules["data_of_test"] is here


def test_nesting_and_concurrency_are_refused(tmp_path):
    errors = []

    def other_thread():
        with pytest.raises(RuntimeError) as caught, det.import_from_path(tmp_path):
            pass
        errors.append(str(caught.value))

    with det.import_from_path(tmp_path):
        with pytest.raises(RuntimeError, match="does not support nesting"), det.import_from_path(tmp_path):
            pass
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert "does not support nesting" in errors[0]
    with det.import_from_path(tmp_path):
        pass
