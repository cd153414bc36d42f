"""Page: overview."""

from dashboards import overview, session

overview.render(*session.current())
