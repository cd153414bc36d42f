"""Page: reconciliation."""

from dashboards import reconciliation, session

reconciliation.render(*session.current())
