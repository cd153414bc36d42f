"""What the dashboard can be told: its title, where it listens, who sees which teams."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field, ValidationError

from warehouse.settings import Settings
from warehouse.snapshot import Scope

PUBLISHED = "INFERLEDGER_PUBLISHED"
CONFIG = "INFERLEDGER_CONFIG"
ANYONE = "*"


class Misconfigured(Exception):
    """The dashboard cannot start as told; the message says what to change."""


class DashboardSettings(Settings):
    """The section `dashboard` of the configuration file. Everything has a working default."""

    title: str = Field("InferLedger", min_length=1, description="shown in the browser's tab and in the sidebar")
    host: str = Field(
        "127.0.0.1", description="address to listen on; anything else than loopback wants a proxy in front"
    )
    port: int = Field(8501, ge=1, le=65535)
    user_header: str | None = Field(
        None, description="request header in which a trusted proxy names the user; default: Streamlit's own sign-in"
    )
    access: dict[str, Literal["everything"] | tuple[str, ...]] = Field(
        default_factory=lambda: {ANYONE: "everything"},
        description="user to teams, or to `everything`; `*` is whoever is not named, who otherwise sees nothing",
    )

    def scope(self, user: str | None) -> Scope | None:
        """What a user may see; None is nothing at all."""
        admitted = self.access.get(user or ANYONE, self.access.get(ANYONE))
        if admitted is None:
            return None
        who = user or "anyone"
        return Scope.everything(who) if admitted == "everything" else Scope.of(who, admitted)


def from_environment(environ: Mapping[str, str] = os.environ) -> tuple[Path, DashboardSettings]:
    """The published folder and the settings, as `launch` hands them over to the process of the pages."""
    if not environ.get(PUBLISHED):
        raise Misconfigured(
            f"{PUBLISHED} is not set: it names the folder with the published snapshot. `inferledger dashboard` sets it."
        )
    return Path(environ[PUBLISHED]), read(Path(environ[CONFIG])) if environ.get(CONFIG) else DashboardSettings()


def read(path: Path) -> DashboardSettings:
    """The section `dashboard` of a configuration file."""
    try:
        content = yaml.safe_load(path.read_text()) or {}
        if not isinstance(content, dict):
            raise Misconfigured(f"{path} is no mapping of sections; `inferledger init` writes one to start from.")
        return DashboardSettings.model_validate(content.get("dashboard") or {})
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read ({error.strerror}); correct {CONFIG}.") from error
    except (yaml.YAMLError, ValidationError) as error:
        raise Misconfigured(f"The section `dashboard` of {path} is not usable: {error}") from error
