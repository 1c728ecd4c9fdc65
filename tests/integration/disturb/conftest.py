"""One stand for the module: SeaweedFS, provider, a planned COLLAB trial and its undisturbed run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from realcli.storage.port import StorageConfig
from realcli_cli.local.programs import agent_folder, terminus_words, toolkit
from realcli_cli.local.provider import scripted_provider
from tests.conftest import Weed
from tests.integration.disturb.stand import SCRIPT, Stand
from tests.integration.session.harness import KEY, REPOSITORY, plan_sweep

STARTER = REPOSITORY / "benchmark" / "starter"


@pytest.fixture(scope="module")
def stands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Stand]]:
    """`stands(program)`: made once for each agent program."""
    folder = tmp_path_factory.mktemp("disturb")
    (folder / "weed").mkdir()
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    weed = Weed(folder / "weed")
    before = {name: os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    made: dict[str, Stand] = {}
    try:
        server = weed.start()
        credentials = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key}
        os.environ.update(credentials)  # this process reads the results
        with scripted_provider(script, key=KEY) as provider:

            def stand(program: str) -> Stand:
                if program not in made:
                    environment = dict(credentials)
                    if program == "terminus-2":
                        environment["REALCLI_TERMINUS_TEMPLATES"] = str(terminus_words(None))
                    storage = StorageConfig(bucket=server.new_bucket(), endpoint=server.endpoint)
                    sweep = plan_sweep(
                        storage, STARTER, provider.url, toolkit(None), agent_folder(program, None), program=program,
                        environment=environment | {"REALCLI_STORAGE_PATIENCE": "120"},
                    )  # fmt: skip
                    made[program] = Stand(sweep, provider, weed, sweep.ordinal("site-settings", "COLLAB"), program)
                return made[program]

            yield stand
    finally:
        weed.kill()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
