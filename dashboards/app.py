"""The router: who looks, which snapshot, which filters; then the page. Started by `dashboards.launch`."""

import streamlit as st

from dashboards import access, filters, parts, session, words
from dashboards.session import Desk, Unreadable
from dashboards.settings import Misconfigured, from_environment
from warehouse.snapshot import NothingPublished, Snapshot

PAGES = (
    ("overview", "Overview", ":material/monitoring:"),
    ("models", "Models", ":material/deployed_code:"),
    ("teams", "Teams and apps", ":material/groups:"),
    ("tasks", "Agent tasks", ":material/smart_toy:"),
    ("fleet", "GPU and pools", ":material/memory:"),
    ("reconciliation", "Reconciliation", ":material/balance:"),
)


def main() -> None:
    """One rerun."""
    try:
        published, settings = from_environment()
    except Misconfigured as error:
        st.error(words.plain(str(error)))
        return
    st.set_page_config(page_title=settings.title, page_icon=":material/receipt_long:", layout="wide")
    page = st.navigation(
        [
            st.Page(f"views/{name}.py", title=title, icon=icon, default=not number)
            for number, (name, title, icon) in enumerate(PAGES)
        ]
    )
    st.html(parts.STYLE)
    scope = access.scope(settings)
    if scope is None:
        st.warning(
            "You are signed in, but no team is shown to you. Whoever runs InferLedger adds you under "
            "`dashboard: access:` in its configuration."
        )
        return
    try:
        snapshot = session.open_snapshot(published, scope)
    except NothingPublished as error:
        _nothing_yet(settings.title, str(error), session.holds(published))
        return
    except Unreadable as error:
        st.error(words.plain(str(error)), icon=":material/error:")
        return
    st.sidebar.markdown(f"**{words.plain(words.name(settings.title))}**")
    view = filters.sidebar(snapshot)
    _foot(snapshot)
    session.lay_out(Desk(snapshot, view))
    parts.banner(snapshot)
    page.run()


def _nothing_yet(title: str, remedy: str, held: tuple[str, ...]) -> None:
    st.title(title)
    if held:
        listed = "".join(f"\n- {words.plain(words.name(name))}" for name in held[:5])
        st.error(
            f"**The first figures are held back, as a control does not hold.**{listed}\n\n"
            "`inferledger doctor` says what to do.",
            icon=":material/gpp_bad:",
        )
    st.info(words.plain(remedy), icon=":material/info:")
    st.caption("`inferledger demo` fills an example organisation. This page looks again each time it is loaded.")


def _foot(snapshot: Snapshot) -> None:
    seen = (
        "the whole organisation" if snapshot.scope.teams is None else "only " + ", ".join(sorted(snapshot.scope.teams))
    )
    with st.sidebar:
        st.caption(
            words.plain(
                f"Data as of {parts.as_of(snapshot)}  \nPublished {words.instant(snapshot.published_at)} UTC  \n"
                f"Snapshot {snapshot.manifest_id[:12]}  \nYou see {seen}"
            )
        )


main()
