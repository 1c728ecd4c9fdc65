from __future__ import annotations

from importlib import resources

import pytest

from realcli.benchmark.catalogue import load_catalogue, parse_catalogue

DATA = resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes()


def test_the_shipped_catalogue_has_51_templates_and_its_digest() -> None:
    catalogue = load_catalogue()
    assert len(catalogue.templates) == 51
    assert catalogue.digest == parse_catalogue(DATA).digest
    assert catalogue.digest != parse_catalogue(DATA + b"\n# changed\n").digest


def test_the_template_of_the_starter_suite_is_decided_by_program_alone() -> None:
    template = load_catalogue().template("or.verify.concurrent-edit")
    assert (template.dimension, template.sub_dimension, template.plant) == ("OR", "state-verification", "dynamic")
    hard = {check.id: check.hard for check in template.checks}
    assert {id: (h["op"], h["decides"]) for id, h in hard.items() if h} == {
        "reread-first": ("order", "both"),
        "user-edit-kept": ("patch_present", "both"),
    }


def test_a_template_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match=r"scenario 'no\.such' is not in the catalogue \(51 templates\)"):
        load_catalogue().template("no.such")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"op: patch_present, decides", b"op: patch_there, decides", "operator 'patch_there'"),
        (b"first: {event: file_read, nth: 1", b"first: {event: file_seen, nth: 1", "event 'file_seen'"),
        (b"rule: response_after}", b"rule: after_response}", "anchor rule 'after_response'"),
        (b"        window: resp1", b"        window: resp2", "window 'resp2'"),
    ],
)
def test_an_undefined_word_refuses_the_catalogue(old: bytes, new: bytes, expected: str) -> None:
    assert old in DATA
    with pytest.raises(ValueError, match=expected):
        parse_catalogue(DATA.replace(old, new, 1))
