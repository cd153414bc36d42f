"""Who is looking, and what they may see."""

import streamlit as st

from dashboards.settings import DashboardSettings
from warehouse.snapshot import Scope


def scope(settings: DashboardSettings) -> Scope | None:
    """The scope of the person at the browser; None is nothing."""
    return settings.scope(user(settings))


def user(settings: DashboardSettings) -> str | None:
    """The signed-in user: from the trusted proxy's header if one is configured, else from Streamlit's own sign-in."""
    if settings.user_header:
        return st.context.headers.get(settings.user_header)
    email = st.user.to_dict().get("email")
    return str(email) if email else None
