"""A machine without libgomp: what the server process does about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infra.errors import InputError
from infra.serving import openmp


class StartedAgainError(Exception):
    """Stands for the process that ``os.execv`` becomes."""


def test_nothing_happens_where_the_system_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openmp, "system_has_it", lambda: True)
    openmp.ensure(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_carried_copy_gets_the_name_that_the_loader_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "libgomp-870cb1d0.so.1.0.0"
    copy.touch()
    monkeypatch.setattr(openmp, "system_has_it", lambda: False)
    monkeypatch.setattr(openmp, "carried", lambda: copy)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    # So that what the call sets is undone after the test.
    monkeypatch.setenv("SPECRACK_OPENMP_FOLDER", "")
    monkeypatch.delenv("SPECRACK_OPENMP_FOLDER")

    def execv(program: str, words: list[str]) -> None:
        raise StartedAgainError

    monkeypatch.setattr(os, "execv", execv)
    for _ in range(2):
        with pytest.raises(StartedAgainError):
            openmp.ensure(tmp_path / "run")
        assert (tmp_path / "run" / "lib" / "libgomp.so.1").resolve() == copy
        assert os.environ["LD_LIBRARY_PATH"] == f"{tmp_path}/run/lib:/opt/lib"
        monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
        monkeypatch.delenv("SPECRACK_OPENMP_FOLDER")


@pytest.mark.parametrize("started_again", [True, False])
def test_without_a_usable_copy_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_again: bool
) -> None:
    monkeypatch.setattr(openmp, "system_has_it", lambda: False)
    monkeypatch.setattr(openmp, "carried", lambda: tmp_path / "copy" if started_again else None)
    if started_again:
        monkeypatch.setenv("SPECRACK_OPENMP_FOLDER", "/somewhere")
    with pytest.raises(InputError, match=r"libgomp\.so\.1 .* not found \(run make setup"):
        openmp.ensure(tmp_path)
